# The network shells: mm-net, mm-delay, mm-link, mm-loss, and the others of shells/src/bin.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="network shells"
remedy="can cargo reach its package registry?"
takes=28

inputs() {
  cat "$PROJECT/setup/cargo" "$PROJECT/shells/Cargo.toml" "$PROJECT/shells/Cargo.lock"
  find "$PROJECT/shells/src" -name '*.rs' -print0 | sort -z | xargs -0 cat
}

present() {
  local program
  for program in $(programs); do
    [[ -x $EYELEVEL_CACHE/bin/$program ]] || return
  done
}

act() {
  "$PROJECT/setup/cargo" build --release --locked
  local program
  for program in $(programs); do
    install_built_program "$program"
  done
}

programs() {
  basename --suffix=.rs "$PROJECT"/shells/src/bin/mm-*.rs
}
