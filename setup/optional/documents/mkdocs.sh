# mkdocs-material, which makes a site of the project's documents, in a virtual environment of its own.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="mkdocs"
remedy="can pip reach its package index?"

VENV=$EYELEVEL_CACHE/mkdocs
PACKAGES=$PROJECT/setup/docs-requirements.txt

inputs() {
  packages_inputs "$PACKAGES"
}

present() {
  [[ -x $VENV/bin/mkdocs && -x $EYELEVEL_CACHE/bin/mkdocs ]]
}

act() {
  install_packages "$VENV" "$PACKAGES"
  install_program mkdocs "$VENV/bin/mkdocs"
}
