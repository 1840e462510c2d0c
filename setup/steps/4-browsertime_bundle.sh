# Browsertime and the packages that it uses as one file. It is a step of its own: the packages of step 3 may be in use
# when it is missing.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="Browsertime as one file"
remedy="this should not happen, please report it"

PACKAGE=$EYELEVEL_CACHE/node/node_modules/browsertime

inputs() {
  cat "$PROJECT/package.json" "$PROJECT/package-lock.json" "$PROJECT/setup/bundle_browsertime.mjs"
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/browsertime-bundle ]]
}

act() {
  "$EYELEVEL_CACHE/bin/node" "$PROJECT/setup/bundle_browsertime.mjs" "$PACKAGE"
  install_program browsertime-bundle "$PACKAGE/bundle/program.mjs"
}
