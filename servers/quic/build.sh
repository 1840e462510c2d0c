#!/usr/bin/env bash
# Builds quic_server, fetching Chromium's source first, and links it into the cache's bin folder.
#
# usage: build.sh               prints where quic_server is
#        build.sh source        only fetches the source; prints where that is
#        build.sh loader_fuzz   builds what of it reads response folders, with sanitizers; prints where that is
#
# The build tree is kept, one per Chromium version and compiler, so that an edit of ours recompiles only
# our files. It works on a copy of this folder: every checkout then shares one tree, whatever its path.
# Compiler: $CC and $CXX, else the newest clang from 19 on.
set -euo pipefail

readonly oldest_clang=19
readonly target=${1:-quic_server}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${EYELEVEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/eyelevel}
home=$cache/quic_server

fail() {
  echo "quic_server: $*" >&2
  exit 1
}

find_compiler() {
  if [[ -z ${CXX:-} ]]; then
    local version
    version=$(compgen -c clang++- | sed -n 's/^clang++-\([0-9]*\)$/\1/p' | sort -n | tail -1)
    [[ ${version:-0} -ge $oldest_clang ]] || fail "no clang from version $oldest_clang on; run 'make setup'"
    CC=clang-$version CXX=clang++-$version
  fi
  CC=${CC:-${CXX/++/}}
  local compiler
  for compiler in "$CXX" "$CC"; do
    command -v "$compiler" >/dev/null || fail "the compiler $compiler is not installed; run 'make setup'"
  done
}

require_sanitizers() {
  "$CXX" -fsyntax-only -x c++ - <<<'#include <sanitizer/asan_interface.h>' 2>/dev/null ||
    fail "$CXX has no sanitizers; run 'setup/packages proof', or install libclang-rt-${CXX##*-}-dev"
}

# The files of this folder that the build reads, as paths below it.
sources() {
  (cd "$here" && find . -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cmake' -o -name CMakeLists.txt \) | sort)
}

# Copies what has changed, so that ninja sees only that as new.
copy_sources() {
  local path
  while read -r path; do
    mkdir -p "$home/source/$(dirname "$path")"
    cmp -s "$here/$path" "$home/source/$path" || cp "$here/$path" "$home/source/$path"
  done < <(sources)
}

link() {
  mkdir -p "$cache/bin"
  ln -s "$1" "$cache/bin/.quic_server.$$"
  mv -T "$cache/bin/.quic_server.$$" "$cache/bin/quic_server"
}

mkdir -p "$home"
exec 9>"$home/lock"
flock -n 9 || { echo "quic_server: waiting for another build, or for its source" >&2; flock 9; }

chromium=$(cd "$here/../.." && python3 -m servers.quic.fetch)
if [[ $target == source ]]; then
  echo "$chromium"
  exit
fi
version=$(basename "$chromium")
find_compiler
key=$(cd "$here" && { sources | xargs sha256sum; "$CXX" --version; } | sha256sum | cut -c 1-12)
program=$home/$version-$key/$target

case $target in
  quic_server) tree=$home/tree-$version-$(basename "$CXX") options=(-DFUZZ=OFF) ;;
  loader_fuzz) tree=$home/fuzz-$version-$(basename "$CXX") options=(-DFUZZ=ON) && require_sanitizers ;;
  *) fail "there is no $target to build, only quic_server, loader_fuzz and source" ;;
esac

if [[ ! -x $program ]]; then
  copy_sources
  cmake -S "$home/source" -B "$tree" -G Ninja --log-level=WARNING \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCHROMIUM="$chromium" "${options[@]}" >/dev/null
  echo "$target: building with $CXX against Chromium $version's QUIC code (minutes the first time)" >&2
  # Ninja's own choice is more jobs than cores, each of which may take a gigabyte.
  ninja -C "$tree" -j "$(nproc)" "$target" >&2
  mkdir -p "$(dirname "$program")"
  cp "$tree/$target" "$program.new"
  mv "$program.new" "$program"
fi
[[ $target != quic_server ]] || link "$program"
echo "$program"
