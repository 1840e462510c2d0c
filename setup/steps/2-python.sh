# The packages of requirements.txt, in a virtual environment.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="Python packages"
remedy="can pip reach its package index?"
takes=55

VENV=$EYELEVEL_CACHE/venv
PACKAGES=$PROJECT/requirements.txt

inputs() {
  packages_inputs "$PACKAGES"
}

present() {
  [[ -x $VENV/bin/python ]]
}

act() {
  install_packages "$VENV" "$PACKAGES"
}
