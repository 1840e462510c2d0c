# Firefox ESR, a system package, and geckodriver, which no Debian has and which is built from its published source.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="Firefox and its driver"
remedy="if no line above says why: can apt and cargo reach their package registries?"
programs="firefox-esr geckodriver"

GECKODRIVER=0.37.1
# The version of Rust that geckodriver needs to be built (rust-version in its Cargo.toml). Debian 13 has 1.85.
RUST=1.86
FOLDER=$EYELEVEL_CACHE/geckodriver/$GECKODRIVER

inputs() {
  echo "geckodriver $GECKODRIVER"
  packages_of firefox
}

present() {
  command -v firefox-esr >/dev/null && [[ -x $EYELEVEL_CACHE/bin/geckodriver ]]
}

act() {
  if [[ ! -x $FOLDER/bin/geckodriver ]]; then
    "$PROJECT/setup/cargo" --check "$RUST"
    rm -rf "$EYELEVEL_CACHE/geckodriver"
    "$PROJECT/setup/cargo" install --locked --root "$FOLDER" --target-dir "$FOLDER/target" "geckodriver@$GECKODRIVER"
    rm -rf "$FOLDER/target"
  fi
  "$PROJECT/setup/packages" firefox
  install_program geckodriver "$FOLDER/bin/geckodriver"
}
