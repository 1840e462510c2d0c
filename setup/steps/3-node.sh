# Browsertime and the Node it runs on, as package-lock.json has them. npm comes with the Python packages.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="Browsertime"
remedy="can npm reach its package registry?"
takes=13

FOLDER=$EYELEVEL_CACHE/node

inputs() {
  cat "$PROJECT/package.json" "$PROJECT/package-lock.json"
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/node && -x $EYELEVEL_CACHE/bin/browsertime ]]
}

act() {
  mkdir -p "$FOLDER"
  cp "$PROJECT/package.json" "$PROJECT/package-lock.json" "$FOLDER"
  # Run no scripts of packages: they would download browsers and drivers, which come from the system here. Without the
  # variable, Node would leave a cache of compiled code in /tmp.
  PATH=$EYELEVEL_CACHE/venv/bin:$PATH NODE_DISABLE_COMPILE_CACHE=1 \
    npm ci --prefix "$FOLDER" --ignore-scripts --no-audit --no-fund --no-update-notifier
  install_program node "$FOLDER/node_modules/.bin/node"
  install_program browsertime "$FOLDER/node_modules/.bin/browsertime"
}
