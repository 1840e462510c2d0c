# HAProxy, the hop that splits TCP connections (docs/networks.md). Its package starts a service, so it is only unpacked.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="HAProxy"
programs="haproxy"
remedy="see what apt says above"

inputs() {
  packages_of haproxy
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/haproxy ]]
}

act() {
  local folder wrapper
  rm -rf "$EYELEVEL_CACHE/unpacked/haproxy" # of another version
  folder=$("$PROJECT/setup/unpack" haproxy)
  # Its libraries are unpacked next to it.
  wrapper=$folder/haproxy
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
    "$folder/usr/lib/x86_64-linux-gnu" "$folder/usr/sbin/haproxy" >"$wrapper"
  chmod 755 "$wrapper"
  install_program haproxy "$wrapper"
}
