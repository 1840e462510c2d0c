#!/usr/bin/env bash
# Install everything that the testbed needs: run the steps in setup/steps/ that are not done yet, in order, and the
# requested ones in setup/optional/.
#
# usage: setup/setup.sh [KIND/NAME…]    such as servers/caddy: setup/optional/servers/caddy.sh
#
# Everything except the system's packages goes to the cache folder: $EYELEVEL_CACHE, or by default
# ${XDG_CACHE_HOME:-~/.cache}/eyelevel. A step is done when its stamp matches its inputs and its result exists. So set-up
# can be stopped at any moment and run again. When all steps are done it prints nothing.
#
# A step is a file that defines the following; its functions run in the project's folder:
#   title     the result, in a few words
#   remedy    what to do when the step fails
#   inputs    prints everything that makes the step out of date when it changes
#   present   succeeds when the result exists
#   act       makes the result, and replaces anything left by an interrupted attempt. Its output goes to a log, and the
#             newest line of it to the screen; lines that begin with "note:" stay on the screen.
# It may also define:
#   takes     how many seconds it takes on two cores, after `prepare`; an estimate for the user
#   prepare   what can be done of it while other steps run, as soon as the system's packages are there. If that fails,
#             `act` does it again, and reports the error.
# An optional step also lists the PROGRAMS that it installs, in a line programs="…" that base.places reads.

set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$PROJECT"

STEPS=("$PROJECT"/setup/steps/*.sh)
OPTIONAL=$PROJECT/setup/optional
STAMPS=$EYELEVEL_CACHE/stamps
LOGS=$EYELEVEL_CACHE/log
CLEAR=
[[ ! -t 1 ]] || CLEAR=$'\r\e[K'
# The most space that set-up needs, which is while Chromium's source is unpacked. Measured on Debian 12.
DISK_NEEDED_GB=4

main() {
  local step number=0
  add_optional "$@"
  ! all_done || exit 0
  check_machine
  mkdir -p "$STAMPS" "$LOGS"
  mark_cache
  lock
  # No trap for INT and TERM: bash 5.2 reports a syntax error in one that comes while it expands $(…).
  trap end EXIT
  for step in "${STEPS[@]}"; do
    number=$((number + 1))
    # While this one waited for the lock, another set-up may have done the step.
    if ! is_done "$step"; then
      run "$step" "[$number/${#STEPS[@]}]"
    fi
    [[ $step != */1-packages.sh ]] || prepare_others
  done
  COMPLETE=yes
}

COMPLETE=
PREPARING=()

# Begin what can be done of the steps to come beside others. Each is a process group of its own.
prepare_others() {
  local step
  for step in "${STEPS[@]}"; do
    # shellcheck source=/dev/null
    if (. "$step" && declare -F prepare >/dev/null) && ! is_done "$step"; then
      # shellcheck disable=SC2016  # the new bash expands them
      setsid bash -euo pipefail -O inherit_errexit -c '. "$0"; . "$1"; prepare' "$PROJECT/setup/common.sh" "$step" \
        {LOCK}>&- {USE}>&- </dev/null &>"$LOGS/$(basename --suffix=.sh "$step").prepare.log" &
      PREPARING+=($!)
    fi
  done
}

end() {
  local group
  [[ $COMPLETE || $FAILED ]] ||
    printf '\nstopped; the steps that are done are kept, and the next set-up continues with the others\n' >&2
  for group in "${PREPARING[@]}"; do
    kill -- "-$group" 2>/dev/null || true
  done
}

# About how long the steps that are not done will take: ", about 5 min left"; nothing if nobody knows.
time_left() {
  local step seconds=0
  for step in "${STEPS[@]}"; do
    # shellcheck source=/dev/null
    is_done "$step" || seconds=$((seconds + $(. "$step" && echo "${takes:-0}")))
  done
  ((seconds == 0)) || printf ', about %d min left on two cores' $(((seconds + 59) / 60))
}

add_optional() { # KIND/NAME…
  local wanted
  for wanted in "$@"; do
    [[ -f $OPTIONAL/$wanted.sh ]] ||
      fail "there is nothing to set up for $wanted; there are $(cd "$OPTIONAL" && echo */*.sh | sed 's/\.sh//g')"
    STEPS+=("$OPTIONAL/$wanted.sh")
  done
}

all_done() {
  local step
  for step in "${STEPS[@]}"; do
    is_done "$step" || return
  done
}

# Call a function of a step in a separate shell: steps share no state, and any command that fails ends the step.
in_step() { # STEP FUNCTION
  bash -euo pipefail -O inherit_errexit -c '. "$0"; . "$1"; "$2"' "$PROJECT/setup/common.sh" "$1" "$2"
}

is_done() { # STEP
  [[ "$(stamp_of "$1")" == "$(cat "$STAMPS/$(basename "$1")" 2>/dev/null)" ]] && in_step "$1" present
}

stamp_of() { # STEP
  in_step "$1" inputs | sha256sum
}

# Refuse now, before anything is done, if something would stop the set-up half-way.
check_machine() {
  in_step "$PROJECT/setup/steps/1-packages.sh" check_system
  # Only the installation of system packages requires root (step 0 needs it, too, but does not fail without it).
  local packages=() name
  while read -r name _; do packages+=("$name"); done < <(in_step "$PROJECT/setup/steps/1-packages.sh" missing)
  [[ ${packages[*]} == "" ]] ||
    as_root --check "these system packages are missing here: ${packages[*]}; installing them needs"
  local folder=$EYELEVEL_CACHE free_gb
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  [[ -w $folder ]] || fail "you may not write to $folder, where the cache would be; set EYELEVEL_CACHE to another folder"
  free_gb=$(($(df --output=avail --block-size=1M "$folder" | tail -n 1) / 1000))
  [[ -x $EYELEVEL_CACHE/bin/quic_server ]] || ((free_gb >= DISK_NEEDED_GB)) ||
    fail "the set-up needs $DISK_NEEDED_GB GB and $folder has $free_gb GB free; free some space, or set EYELEVEL_CACHE to a folder on another disk"
}

# Back-up programs skip a folder with this file, and `make clean` removes only a folder with it.
mark_cache() {
  printf '%s\n' "Signature: 8a477f597d28d172789f06886806bc55" "# The cache of the Eyelevel testbed." >"$TAG"
}

# The lock is held until this process ends.
lock() {
  exec {LOCK}>"$EYELEVEL_CACHE/setup.lock" {USE}>>"$TAG"
  if ! flock --nonblock "$LOCK"; then
    echo "another set-up is running in $EYELEVEL_CACHE; waiting for it"
    flock "$LOCK"
  fi
}

run() { # STEP POSITION
  local started=$SECONDS stamp title remedy log reason
  # shellcheck source=/dev/null
  { read -r title && read -r remedy; } < <(. "$1" && printf '%s\n' "$title" "$remedy")
  title="$2 $title"
  log=$LOGS/$(basename --suffix=.sh "$1").log
  # A missing part can be added at any time; an existing one may be in use by a checkout of another commit.
  ! in_step "$1" present || require_unused "$title would be renewed in $EYELEVEL_CACHE"
  stamp=$(stamp_of "$1") # compute it now, so that a later change of an input makes the step out of date
  # The step does not inherit the locks: a daemon started by a package would keep them.
  if in_step "$1" act {LOCK}>&- {USE}>&- </dev/null 2>&1 | show "$title" "$log" && in_step "$1" present; then
    printf '%s\n' "$stamp" >"$STAMPS/$(basename "$1")"
    printf '%s: done in %s%s\n' "$title" "$(duration "$started")" "$(time_left)"
  else
    tail -n 25 "$log" >&2
    [[ $remedy == *\? ]] || remedy+=.
    reason=$(reason "$log")
    fail "$title failed${reason:+ ($reason)}: $remedy Its log is $log; 'make setup' continues from here"
  fi
}

# Log the output of a step, and show its newest line: each second on a terminal, otherwise every 30 seconds.
show() { # TITLE LOG
  local started=$SECONDS line="" newest="" text shown=$SECONDS every=30 width=120
  if [[ -t 1 ]]; then
    every=1
    width=$(tput cols)
  else
    echo "$1 …"
  fi
  exec {log}>"$2"
  while true; do
    # After a time-out, `text` contains an incomplete line.
    if IFS= read -r -t 1 text; then
      newest=$line$text line=""
      printf '%s\n' "$newest" >&"$log"
      [[ $newest != note:* ]] || printf '%s%s: %s\n' "$CLEAR" "$1" "${newest#note: }"
    elif (($? > 128)); then
      line+=$text
    else
      break
    fi
    if ((SECONDS - shown >= every)); then
      shown=$SECONDS
      text="$1 $(duration "$started")  $newest"
      printf '%s%s' "$CLEAR" "${text:0:width-1}"
      [[ -t 1 ]] || echo
    fi
  done
  printf '%s' "$CLEAR"
}

# The line of a log that says most about a failure: the last one on a cause that programs do not name in their last line,
# otherwise the last one on an error, or the last one. Nothing if the step refused something in a line of its own.
reason() { # LOG
  local pattern
  ! grep -q '^eyelevel: ' "$1" || return 0
  for pattern in 'certificate|could not resolve|timed out|refused|unreachable|no space left|denied' '\<error\>' .; do
    if grep -iE "$pattern" "$1" | tail -n 1 | cut -c -160 | grep .; then
      return
    fi
  done
  echo "it printed nothing"
}

duration() { # SINCE
  printf '%d:%02d min' $(((SECONDS - $1) / 60)) $(((SECONDS - $1) % 60))
}

main "$@"
