# The system's packages: those of setup/packages.txt that are missing.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="system packages"
remedy="see what apt says above"
takes=55

inputs() {
  cat "$TABLE"
}

present() {
  local missing
  missing=$(missing)
  [[ -z $missing ]]
}

act() {
  local missing
  missing=$(missing)
  [[ -z $missing ]] || install_all "$missing"
  record_versions
}

install_all() { # MISSING
  local nginx_was_there=yes
  dpkg-query -W nginx &>/dev/null || nginx_was_there=no
  install "$1"
  # Debian starts installed services; the testbed needs NGINX only inside a replay.
  if [[ $nginx_was_there == no && -d /run/systemd/system ]]; then
    as_root systemctl disable --now nginx
  fi
}

# Install packages: lines of package and version pattern.
install() { # LINES
  # After an interruption, apt refuses to work until half-installed packages are configured.
  as_root dpkg --configure -a
  apt update || echo "apt could not update every list; continuing with those it has"
  local packages
  packages=$(tested_versions <<<"$1")
  # Do not remove anything that a user installed.
  # shellcheck disable=SC2086  # a word each
  apt install --yes --no-install-recommends --no-remove $packages
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get --option DPkg::Lock::Timeout=600 "$@"
}

# Fail with one line when the table has no column for this system.
check_system() {
  local columns
  read -ra columns < <(grep '^package' "$TABLE")
  columns=("${columns[@]:1:${#columns[@]}-2}")
  [[ " ${columns[*]} " == *" $(system_name) "* && $(uname -m) == x86_64 ]] ||
    fail "this system is $(system_name) on $(uname -m); the testbed supports ${columns[*]} on x86_64 (setup/packages.txt)"
}

# The packages that this machine needs. Rust is included only if there is none that is new enough.
needed() {
  if "$PROJECT/setup/cargo" --check &>/dev/null; then
    packages_of ""
  else
    packages_of "" && packages_of rust
  fi
}

# The packages that this machine needs and lacks.
missing() {
  needed | without_installed
}

without_installed() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n')
  awk 'NR == FNR { if ($2 == "ii") installed[$1]; next } !($1 in installed)' <(echo "$installed") -
}

# Convert lines of package and pattern into apt's arguments; without a version if apt has none that matches.
tested_versions() {
  local name pattern version
  while read -r name pattern; do
    while read -r version; do
      # shellcheck disable=SC2053  # it is a pattern
      if [[ $version == $pattern ]]; then
        name="$name=$pattern"
        break
      fi
    done < <(apt-cache madison "$name" | cut -d'|' -f2 | tr -d ' ')
    echo "$name"
  done
}

# Write the installed versions to a file, which campaigns cite, and print those that differ from the tested ones.
record_versions() {
  installed_versions | cut -f 1,2 >"$EYELEVEL_CACHE/packages.tsv"
  untested_versions | sed 's/^/note: /' >&2
}

# The listed packages that are installed: lines of name, version and tested pattern.
installed_versions() {
  local installed
  installed=$(dpkg-query -W -f '${Package}\t${db:Status-Abbrev}\t${Version}\n')
  awk -F '[\t ]+' 'NR == FNR { if ($2 == "ii") version[$1] = $NF; next }
    NF > 1 && $1 in version { print $1 "\t" version[$1] "\t" $2 }' <(echo "$installed") <(listed)
}

# Lines on the installed packages of which another version was tested.
untested_versions() {
  local name version pattern
  while read -r name version pattern; do
    # shellcheck disable=SC2053
    [[ $version == $pattern ]] || echo "$name is $version; the testbed was tested with $pattern"
  done < <(installed_versions)
}
