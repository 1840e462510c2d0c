# The program `eyelevel`, which runs a checkout that was set up here: the one that it is started in.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="the program eyelevel"
remedy="this should not happen, please report it"

# A line for each checkout that was set up with this cache, in the order of their first set-ups.
CHECKOUTS=$EYELEVEL_CACHE/checkouts

inputs() {
  cat "$PROJECT/setup/program"
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/eyelevel ]] && grep -Fxqs "$PROJECT" "$CHECKOUTS"
}

act() {
  install -D "$PROJECT/setup/program" "$EYELEVEL_CACHE/bin/.eyelevel.new"
  mv -T "$EYELEVEL_CACHE/bin/.eyelevel.new" "$EYELEVEL_CACHE/bin/eyelevel"
  grep -Fxqs "$PROJECT" "$CHECKOUTS" || printf '%s\n' "$PROJECT" >>"$CHECKOUTS"
}
