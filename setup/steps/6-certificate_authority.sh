# The certificate authority of this machine, which only the testbed's own browsers trust.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="certificate authority"
remedy="this should not happen, please report it"

inputs() { :; }

present() {
  [[ -e $EYELEVEL_CACHE/ca/certificate.pem ]]
}

act() {
  "$EYELEVEL_CACHE/venv/bin/python" -m servers.certificates
}
