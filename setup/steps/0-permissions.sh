# The kernel's permissions that ordinary users need and this machine withholds (setup/grant). Without root, or if sudo
# would ask for a password, print the command that grants them. A missing permission may do no harm (root needs none of
# them), and commands that measure report it again.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="permissions of ordinary users"
remedy="see above"

inputs() {
  cat "$PROJECT/setup/grant" "$PROJECT/setup/apparmor-profile"
  user
}

present() { :; }

act() {
  local grant fault reason="" withheld=()
  while read -r grant; do
    # shellcheck disable=SC2086  # a word each
    if ! fault=$(as_root "$PROJECT/setup/grant" $grant 2>&1 >/dev/null); then
      reason=${reason:-${fault##*$'\n'}} withheld+=("$grant")
    fi
  done < <("$PROJECT/setup/grant" missing "$(user)")
  # Print the command instead of asking for a password: sudo would report a user who may not use it, and the missing
  # permissions may never be needed.
  ((${#withheld[@]} == 0)) && return
  # An environment variable of containers (systemd's CONTAINER_INTERFACE).
  if [[ -n ${container:-} ]]; then
    echo "note: not granted here: ${withheld[*]}; a container has what it is started with (docs/container.md)"
  else
    echo "note: not granted here (${reason#eyelevel: }); an administrator can: sudo $PROJECT/setup/grant ${withheld[*]}"
  fi
}

# The user for whom this is installed.
user() {
  echo "${SUDO_USER:-$(id --user --name 2>/dev/null)}"
}
