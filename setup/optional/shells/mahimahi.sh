# Upstream Mahimahi's mm-delay, mm-link and mm-loss: those of the system if somebody has installed them, else those of
# Debian 11, the last Debian that has them. They run unchanged (replay/shells/nested.py) and need not be setuid. They
# are not put on the PATH, since our shells have the same names.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="Mahimahi's shells"
remedy="if apt has Debian 11's package no more, install Mahimahi into /usr/local by its own instructions"
programs="mahimahi"

SHELLS="mm-delay mm-link mm-loss"
FOLDER=$EYELEVEL_CACHE/mahimahi
VERSION=0.98-1.1+b2
PACKAGE=pool/main/m/mahimahi/mahimahi_${VERSION}_amd64.deb
SHA256=83059f8dcba0aca96b3084c8a14b8f00719a845fa52992185a64aec83e1331b6

inputs() {
  echo "$VERSION $SHA256"
  cat "$PROJECT/replay/shells/rights.c"
  system_shells | xargs --no-run-if-empty sha256sum
}

present() {
  local program
  for program in $SHELLS rights.so version; do
    [[ -x $FOLDER/$program ]] || return
  done
  [[ -x $EYELEVEL_CACHE/bin/mahimahi ]]
}

act() {
  "$PROJECT/setup/packages" mahimahi
  rm -rf "$FOLDER.new"
  mkdir "$FOLDER.new"
  local version program shells
  mapfile -t shells < <(system_shells)
  if ((${#shells[@]})); then
    ln -s "${shells[@]}" "$FOLDER.new"
    version=$(dpkg-query --show --showformat '${Version}' mahimahi 2>/dev/null) || version="of this system"
  else
    unpack "$FOLDER.new"
    version="$VERSION of Debian 11"
  fi
  version+=", SHA-256 $(cat "$FOLDER.new"/mm-* | sha256sum | cut -c -16)"
  gcc -shared -fPIC -O2 -Wall -Wextra -Werror -o "$FOLDER.new/rights.so" "$PROJECT/replay/shells/rights.c"
  printf '#!/bin/sh\necho "mahimahi %s"\n' "$version" >"$FOLDER.new/version"
  chmod 755 "$FOLDER.new/version"
  rm -rf "$FOLDER"
  mv "$FOLDER.new" "$FOLDER"
  install_program mahimahi "$FOLDER/version"
}

# Print the paths of the system's shells, if it has all of them. A program is Mahimahi's only if it contains a message
# about setuid: our shells have the same names, and no such message.
system_shells() {
  local program path paths=()
  for program in $SHELLS; do
    path=$(PATH=/usr/local/bin:/usr/bin:/bin command -v "$program") && grep -q "setuid root" "$path" || return 0
    paths+=("$path")
  done
  printf '%s\n' "${paths[@]}"
}

# Get Debian 11's package from the mirrors that apt has for Debian, and take its shells.
unpack() { # FOLDER
  local mirror program
  # shellcheck disable=SC2016  # for apt
  while read -r mirror; do
    /usr/lib/apt/apt-helper download-file "$mirror/$PACKAGE" "$1/package.deb" "SHA256:$SHA256" && break
  done < <(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Created-By: Packages' | sort -u)
  mkdir "$1/package"
  dpkg-deb --extract "$1/package.deb" "$1/package"
  for program in $SHELLS; do
    install -m 755 "$1/package/usr/bin/$program" "$1"
  done
  rm -r "$1/package" "$1/package.deb"
}
