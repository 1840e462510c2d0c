# A library that gives the browser TCP Fast Open, for the protocols that use it.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="TCP Fast Open for the browser"
remedy="this should not happen, please report it"

inputs() {
  cat "$PROJECT/tuning/fast_open.c"
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/fast_open.so ]]
}

act() {
  gcc -shared -fPIC -O2 -Wall -Wextra -Werror -o "$EYELEVEL_CACHE/bin/fast_open.so.new" "$PROJECT/tuning/fast_open.c" -ldl
  mv "$EYELEVEL_CACHE/bin/fast_open.so.new" "$EYELEVEL_CACHE/bin/fast_open.so"
}
