# A virtual environment of the system's Python with the packages of requirements.txt. Not another Python that may be on
# the PATH: uWSGI's plugin embeds the system's, and has to find packages of the same version.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="Python packages"
remedy="can pip reach its package index?"

VENV=$EYELEVEL_CACHE/venv

inputs() {
  /usr/bin/python3 --version
  cat "$PROJECT/requirements.txt"
}

present() {
  [[ -x $VENV/bin/python ]]
}

act() {
  /usr/bin/python3 -m venv --clear "$VENV"
  "$VENV/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --progress-bar off --only-binary :all: \
    --require-hashes --requirement "$PROJECT/requirements.txt"
}
