# quic_server, from Chromium's source: the longest step. Its build tree is kept in the cache.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="quic_server"
remedy="can apt reach its source packages?"
takes=165

inputs() {
  find servers/quic -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 cat
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/quic_server ]]
}

# One core downloads and unpacks the source.
prepare() {
  nice -n 5 servers/quic/build.sh source
}

act() {
  nice -n 5 servers/quic/build.sh
}
