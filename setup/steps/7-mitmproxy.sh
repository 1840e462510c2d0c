# mitmproxy, through which sites are recorded, in a virtual environment of its own: its pins conflict with ours.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="mitmproxy"
remedy="can pip reach its package index?"

VENV=$EYELEVEL_CACHE/mitmproxy

inputs() {
  /usr/bin/python3 --version
  cat "$PROJECT/setup/mitmproxy-requirements.txt"
}

present() {
  [[ -x $VENV/bin/mitmdump && -x $EYELEVEL_CACHE/bin/mitmdump ]]
}

act() {
  /usr/bin/python3 -m venv --clear "$VENV"
  "$VENV/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --progress-bar off --only-binary :all: \
    --no-deps --require-hashes --requirement "$PROJECT/setup/mitmproxy-requirements.txt"
  install_program mitmdump "$VENV/bin/mitmdump"
}
