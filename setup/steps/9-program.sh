# The program `eyelevel`: a console script that runs this checkout.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="the program eyelevel"
remedy="this should not happen, please report it"

inputs() {
  echo "$PROJECT"
  cat "$PROJECT/pyproject.toml"
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/eyelevel ]]
}

act() {
  "$EYELEVEL_CACHE/venv/bin/python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
    --editable "$PROJECT"
  install_program eyelevel "$EYELEVEL_CACHE/venv/bin/eyelevel"
}
