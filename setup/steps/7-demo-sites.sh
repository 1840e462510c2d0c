# The demo sites, so that there is something to measure before anything has been recorded.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="demo sites"
remedy="this should not happen, please report it"

# They lie in the checkout, not in the cache, and so does what they were made from.
MADE_FROM=$PROJECT/sites/.demo

inputs() { :; }

present() {
  [[ -e $MADE_FROM && $(<"$MADE_FROM") == "$(generator)" ]]
}

act() {
  "$EYELEVEL_CACHE/venv/bin/python" -m record demo
  generator >"$MADE_FROM"
}

generator() {
  find record/demo record/site.py -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 cat | sha256sum
}
