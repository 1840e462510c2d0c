# The packages of the installed browsers, kept: a distribution soon replaces a browser by its next version, but a
# campaign can be resumed only in its own. `setup/browser` installs a version again.
# shellcheck shell=bash disable=SC2034  # title and remedy are for setup.sh

title="the browsers' packages"
remedy="is there space in the cache?"
takes=10

# BROWSER/VERSION/ has the packages and their checksums, in SHA256SUMS, or no packages if apt no longer offered them.
KEPT=$EYELEVEL_CACHE/browsers

inputs() { :; }

present() {
  local browser version
  while read -r browser version; do
    [[ -e $KEPT/$browser/$version ]] || return
  done < <(browsers)
}

act() {
  local browser version packages new
  while read -r browser version; do
    [[ ! -e $KEPT/$browser/$version ]] || continue
    new=$KEPT/$browser/.new
    rm -rf "$new"
    mkdir -p "$new"
    mapfile -t packages < <(browser_packages | awk -v wanted="$browser $version" '$1 " " $2 == wanted { print $3 }')
    if ! (cd "$new" && apt-get download --quiet=2 "${packages[@]}"); then
      rm -f "$new"/*
      echo "note: apt no longer offers the packages of $browser $version, so they are not kept for campaigns that are" \
        "resumed after an update"
    fi
    (cd "$new" && find . -name '*.deb' -exec sha256sum {} +) >"$KEPT/$browser/.sums"
    mv "$KEPT/$browser/.sums" "$new/SHA256SUMS"
    mv -T "$new" "$KEPT/$browser/$version"
  done < <(browsers)
}

# The installed browsers: lines of name and version.
browsers() {
  browser_packages | cut -d ' ' -f 1,2 | sort -u
}

# Their packages: lines of browser, version, and apt's name of the package in this version.
browser_packages() {
  dpkg-query -W -f '${db:Status-Abbrev} ${source:Package} ${Version} ${Package}=${Version}\n' |
    awk '$1 == "ii" && $2 ~ /^(chromium|firefox-esr)$/ { print $2, $3, $4 }'
}

# The kept browsers whose version is the given one, with or without the distribution's revision; all if it is empty.
kept() { # [VERSION]
  local sums version
  for sums in "$KEPT"/*/*/SHA256SUMS; do
    version=$(basename "${sums%/*}")
    [[ ! -s $sums || ($1 != "" && $version != "$1" && ${version%-*} != "$1") ]] || echo "${sums#"$KEPT/"}"
  done | cut -d / -f 1,2 --output-delimiter ' '
}
