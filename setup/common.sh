# Sourced by every script of setup/: where things are, and how to stop with one line that says what to do.
# shellcheck shell=bash

PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
EYELEVEL_CACHE=$(realpath -m "${EYELEVEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/eyelevel}")
export EYELEVEL_CACHE

FAILED=
fail() {
  # shellcheck disable=SC2034  # setup.sh looks at it when it ends
  FAILED=yes
  printf 'eyelevel: %s\n' "$*" >&2
  exit 1
}

# Programs that set-up calls or builds may split the cache's name at blanks.
[[ $EYELEVEL_CACHE != *[[:space:]]* ]] ||
  fail "the cache cannot be in '$EYELEVEL_CACHE', whose name has blanks; set EYELEVEL_CACHE to a folder without any"

as_root() {
  "$PROJECT/setup/as-root" "$@"
}

# Fail while a program uses the cache (base.places.use_cache); otherwise keep programs from using it until this process
# ends. This does not wait, since a campaign takes days. The lock is on TAG. It is open as $USE, for writing, since NFS
# locks no other files.
TAG=$EYELEVEL_CACHE/CACHEDIR.TAG
require_unused() { # WHAT_WOULD_HAPPEN
  local pid user="a process that cannot be seen from here"
  ! flock --nonblock "$USE" || return 0
  pid=$(awk -v file="$(stat -c %i "$TAG")" '$2 == "FLOCK" && $6 ~ ":" file "$" { print $5; exit }' /proc/locks)
  [[ ! -r /proc/$pid/cmdline ]] || user="process $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline" | head -c 100))"
  fail "$1, which $user uses; wait until it has ended, or set EYELEVEL_CACHE to another folder"
}

# Link a program into the folder that base.places.tool searches first.
install_program() { # NAME TARGET
  mkdir -p "$EYELEVEL_CACHE/bin"
  ln -sfn "$2" "$EYELEVEL_CACHE/bin/$1"
}

# The folder where cargo puts its output for this checkout.
built_folder() {
  echo "$EYELEVEL_CACHE/cargo-target/$(sha256sum <<<"$PROJECT" | cut -c 1-12)"
}

# Copy a built program into that folder, so that it stays as installed when its sources are built again for tests.
install_built_program() { # NAME
  install -D "$(built_folder)/release/$1" "$EYELEVEL_CACHE/bin/.$1.new"
  mv -T "$EYELEVEL_CACHE/bin/.$1.new" "$EYELEVEL_CACHE/bin/$1"
}

# Make a virtual environment with the packages that a lock file pins, and nothing else. It uses the system's Python, not
# another one that may be on the PATH: uWSGI's plugin embeds the system's, and must find packages of the same version.
install_packages() { # VENV LOCK_FILE [PIP_OPTION...]
  /usr/bin/python3 -m venv --clear "$1"
  "$1/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --progress-bar off --only-binary :all: \
    --require-hashes --requirement "$2" "${@:3}"
}

# The inputs on which such an environment depends.
packages_inputs() { # LOCK_FILE
  /usr/bin/python3 --version
  cat "$1"
}

# The table of the system's packages.
TABLE=$PROJECT/setup/packages.txt

# The name of this system's column in the table.
system_name() (
  . /etc/os-release
  echo "$ID-${VERSION_ID:-}"
)

# The packages that this system may need: lines of package and version pattern; a group's lines follow a line with its
# name.
listed() {
  awk -v this_system="$(system_name)" '
    /^#/ || NF == 0 { next }
    $1 == "package" { for (i = 2; i < NF; i++) if ($i == this_system) column = i; next }
    $column != "-"  { print $1, $column }' "$TABLE"
}

# The packages of a group, or those without a group if the name is empty: lines of package and version pattern.
packages_of() { # NAME
  listed | awk -v wanted="$1" 'NF == 1 { name = $1; next } name == wanted'
}
