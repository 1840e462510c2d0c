# The system's packages: those of setup/packages.txt that are missing.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="system packages"
remedy="see what apt says above"

TABLE=$PROJECT/setup/packages.txt

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
  [[ -z $missing ]] || install
  record_versions
}

install() {
  # An apt that was interrupted leaves packages half installed, and refuses to work until that is mended.
  as_root dpkg --configure -a
  apt update || echo "apt could not update every list; going on with those it has"
  local packages nginx_was_there=yes
  dpkg-query -W nginx &>/dev/null || nginx_was_there=no
  packages=$(missing | in_the_version_tried)
  # shellcheck disable=SC2086  # a word each
  # What a user installed is never taken away in exchange.
  apt install --yes --no-install-recommends --no-remove $packages
  # Debian starts what it installs; the testbed's NGINX runs only inside a replay.
  if [[ $nginx_was_there == no && -d /run/systemd/system ]]; then
    as_root systemctl disable --now nginx
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get --option DPkg::Lock::Timeout=600 "$@"
}

# This system's name, as the table's columns have it.
system_name() (
  . /etc/os-release
  echo "$ID-${VERSION_ID:-}"
)

# Fails with one line when the table has no column for this system.
check_system() {
  local columns
  read -ra columns < <(grep '^package' "$TABLE")
  columns=("${columns[@]:1:${#columns[@]}-2}")
  [[ " ${columns[*]} " == *" $(system_name) "* && $(uname -m) == x86_64 ]] ||
    fail "this system is $(system_name) on $(uname -m); the testbed knows ${columns[*]} on x86_64 (setup/packages.txt)"
}

# What this system may need: lines of package and version pattern, with a line "rust" before what brings Rust, and a
# line "checkers" before what only `make check` runs.
listed() {
  awk -v this_system="$(system_name)" '
    /^#/ || NF == 0 { next }
    $1 == "package" { for (i = 2; i < NF; i++) if ($i == this_system) column = i; next }
    $column != "-"  { print $1, $column }' "$TABLE"
}

# What it needs of that: Rust only where there is none that will do.
needed() {
  if "$PROJECT/setup/cargo" --check &>/dev/null; then
    listed | sed '/^rust /,$d'
  else
    listed | sed '/^rust /d; /^checkers /,$d'
  fi
}

# What `setup/check --install` adds.
checkers() {
  listed | sed '1,/^checkers /d'
}

# The part of it that is not installed.
missing() {
  local installed needed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n')
  needed=$(needed)
  awk 'NR == FNR { if ($2 == "ii") installed[$1]; next } !($1 in installed)' <(echo "$installed") <(echo "$needed")
}

# Lines of package and pattern, as apt takes them; without the version when it has none that matches.
in_the_version_tried() {
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

# Keep what is installed in a file, for campaigns to cite, and tell what differs from what was tried.
record_versions() {
  local name pattern version
  listed | while read -r name pattern; do
    version=$(dpkg-query -W -f '${Version}' "$name" 2>/dev/null) || continue
    # shellcheck disable=SC2053
    [[ $version == $pattern ]] || echo "note: $name is $version; the testbed was tried with $pattern" >&2
    printf '%s\t%s\n' "$name" "$version"
  done >"$EYELEVEL_CACHE/packages.tsv"
}
