# mitmproxy, through which sites are recorded. Its pins conflict with ours, so it has a separate virtual environment.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="mitmproxy"
remedy="can pip reach its package index?"
takes=10

VENV=$EYELEVEL_CACHE/mitmproxy
PACKAGES=$PROJECT/setup/mitmproxy-requirements.txt

inputs() {
  packages_inputs "$PACKAGES"
}

present() {
  [[ -x $VENV/bin/mitmdump && -x $EYELEVEL_CACHE/bin/mitmdump ]]
}

act() {
  install_packages "$VENV" "$PACKAGES" --no-deps
  install_program mitmdump "$VENV/bin/mitmdump"
}
