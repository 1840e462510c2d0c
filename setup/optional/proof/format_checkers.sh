# Programs of others that check RO-Crates and WACZ files, for `make proof`. Their pins conflict with ours, so they have a
# separate virtual environment.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="checkers of formats"
remedy="can pip reach its package index?"

VENV=$EYELEVEL_CACHE/format_checkers
PACKAGES=$PROJECT/setup/format-checkers-requirements.txt

inputs() {
  packages_inputs "$PACKAGES"
}

present() {
  [[ -x $VENV/bin/rocrate-validator && -x $VENV/bin/wacz ]]
}

act() {
  install_packages "$VENV" "$PACKAGES" --no-binary surt
}
