# What ordinary users need of the kernel and this machine withholds (setup/grant). Where we have no root, a line says how
# to grant it: what is missing may be no hindrance (root needs none of it), and whoever measures is told again.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="permissions of ordinary users"
remedy="see above"

inputs() {
  cat "$PROJECT/setup/grant" "$PROJECT/setup/apparmor-profile"
  user
}

present() { :; }

act() {
  local grant fault
  while read -r grant; do
    # shellcheck disable=SC2086  # a word each
    fault=$(as_root "$PROJECT/setup/grant" $grant 2>&1 >/dev/null) ||
      echo "note: not granted here (${fault##*$'\n'}); an administrator can: sudo $PROJECT/setup/grant $grant"
  done < <("$PROJECT/setup/grant" missing "$(user)")
}

# For whom this is installed.
user() {
  echo "${SUDO_USER:-$(id --user --name 2>/dev/null)}"
}
