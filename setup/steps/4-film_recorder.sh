# The film recorder.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="film recorder"
remedy="can cargo reach its package registry?"
takes=30

inputs() {
  cat "$PROJECT/setup/cargo" "$PROJECT/films/recorder/Cargo.toml" "$PROJECT/films/recorder/Cargo.lock"
  find "$PROJECT/films/recorder/src" -name '*.rs' -print0 | sort -z | xargs -0 cat
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/film-recorder ]]
}

act() {
  "$PROJECT/setup/cargo" --in films/recorder build --release --locked
  install_built_program film-recorder
}
