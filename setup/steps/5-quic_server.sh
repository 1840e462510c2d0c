# quic_server, from Chromium's source: by far the longest step. It has a cache of its own, below this one.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="quic_server"
remedy="can apt reach its source packages?"

inputs() {
  find servers/quic -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 cat
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/quic_server ]]
}

act() {
  nice -n 5 servers/quic/build.sh
}
