# Firefox ESR, a system package, and geckodriver, which no Debian has and which is built from its published source.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="Firefox and its driver"
remedy="can apt and cargo reach their package registries, and is there a Rust of at least 1.86 (rustc --version)?"
programs="firefox-esr geckodriver"

GECKODRIVER=0.37.1
FOLDER=$EYELEVEL_CACHE/geckodriver/$GECKODRIVER

inputs() {
  echo "geckodriver $GECKODRIVER"
  awk 'NF == 1 { name = $1; next } name == "firefox"' "$PROJECT/setup/packages.txt"
}

present() {
  command -v firefox-esr >/dev/null && [[ -x $EYELEVEL_CACHE/bin/geckodriver ]]
}

act() {
  "$PROJECT/setup/packages" firefox
  rm -rf "$EYELEVEL_CACHE/geckodriver"
  "$PROJECT/setup/cargo" install --locked --root "$FOLDER" --target-dir "$FOLDER/target" "geckodriver@$GECKODRIVER"
  rm -rf "$FOLDER/target"
  install_program geckodriver "$FOLDER/bin/geckodriver"
}
