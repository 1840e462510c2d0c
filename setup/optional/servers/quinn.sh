# quinn_server, our server on quinn and h3, and quinn_client, which receives background flows: the sources of its crates are downloaded and compiled.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="quinn_server"
remedy="can cargo reach its package registry?"
programs="quinn_server quinn_client masque_proxy"

inputs() {
  cat "$PROJECT/setup/cargo" "$PROJECT/servers/quinn/Cargo.toml" "$PROJECT/servers/quinn/Cargo.lock"
  find "$PROJECT/servers/quinn/src" -name '*.rs' -print0 | sort -z | xargs -0 cat
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/quinn_server && -x $EYELEVEL_CACHE/bin/quinn_client && -x $EYELEVEL_CACHE/bin/masque_proxy ]]
}

act() {
  "$PROJECT/setup/cargo" --in servers/quinn build --release --locked
  local program
  for program in $programs; do
    install_built_program "$program"
  done
}
