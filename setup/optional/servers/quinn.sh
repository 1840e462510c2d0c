# quinn_server, our server on quinn and h3: the sources of its crates are downloaded and compiled.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="quinn_server"
remedy="can cargo reach its package registry?"
programs="quinn_server"

inputs() {
  cat "$PROJECT/servers/quinn/Cargo.toml" "$PROJECT/servers/quinn/Cargo.lock"
  find "$PROJECT/servers/quinn/src" -name '*.rs' -print0 | sort -z | xargs -0 cat
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/quinn_server ]]
}

act() {
  "$PROJECT/setup/cargo" --in servers/quinn build --release --locked
  install_program quinn_server "$EYELEVEL_CACHE/cargo-target/release/quinn_server"
}
