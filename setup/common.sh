# Sourced by every script of setup/: where things lie, and how to stop with one line a person can act on.
# shellcheck shell=bash

PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
EYELEVEL_CACHE=$(realpath -m "${EYELEVEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/eyelevel}")
export EYELEVEL_CACHE

fail() {
  printf 'eyelevel: %s\n' "$*" >&2
  exit 1
}

as_root() {
  "$PROJECT/setup/as-root" "$@"
}

# Link a program into the place where eyelevel.places.tool looks first.
install_program() { # NAME TARGET
  mkdir -p "$EYELEVEL_CACHE/bin"
  ln -sfn "$2" "$EYELEVEL_CACHE/bin/$1"
}
