# Caddy, a server of HTTP/2 and HTTP/3. Its package starts a service, so it is only unpacked.
# shellcheck shell=bash disable=SC2034  # title, remedy and programs are for setup.sh and base.places

title="Caddy"
programs="caddy"
remedy="see what apt says above"

inputs() {
  packages_of caddy
}

present() {
  [[ -x $EYELEVEL_CACHE/bin/caddy ]]
}

act() {
  local folder
  rm -rf "$EYELEVEL_CACHE/unpacked/caddy" # of another version
  folder=$("$PROJECT/setup/unpack" caddy)
  install_program caddy "$folder/usr/bin/caddy"
}
