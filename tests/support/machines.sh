# Sourced by proofs of clusters: machines of an ordinary user, made of namespaces.
# shellcheck shell=bash
#
# It is run in fresh user, network, mount, UTS and process namespaces with all capabilities over them. Each machine has
# a host name, a home, processes and temporary files of its own; its addresses are on the loopback that all share.
# What a machine runs has no capabilities, and ends with the namespaces.

# ROOM, the folder in which all of it is; PROJECT; CACHE, the testbed's real one; PROGRAMS, a folder of unpacked packages.

export PATH=$PROGRAMS/usr/sbin:$PROGRAMS/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LD_LIBRARY_PATH=$PROGRAMS/usr/lib/x86_64-linux-gnu:$PROGRAMS/usr/lib/x86_64-linux-gnu/slurm-wlm
export ME=researcher

prepare_network() {
  ip link set lo up
  echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
  echo "127.0.0.1 localhost" >"$ROOM/hosts"
}

# Make a home like a user's after `make setup`: a checkout, and a cache whose keys are this home's own.
make_home() { # MACHINE ADDRESS
  local home=$ROOM/$1
  mkdir -p "$home/.cache/eyelevel/bin" "$home/.ssh" "$home/tmp"
  chmod 700 "$home" "$home/.ssh"
  ln -s "$PROJECT" "$home/eyelevel"
  local entry
  for entry in "$CACHE"/*; do
    case ${entry##*/} in bin | cluster) ;; *) ln -s "$entry" "$home/.cache/eyelevel/" ;; esac
  done
  for entry in "$CACHE"/bin/*; do
    [[ ${entry##*/} == eyelevel ]] || ln -s "$entry" "$home/.cache/eyelevel/bin/"
  done
  # The program of this checkout, which need not be the one that was set up.
  printf '#!/bin/sh\nPYTHONPATH=%s exec %s/venv/bin/python -m eyelevel "$@"\n' "$PROJECT" "$CACHE" \
    >"$home/.cache/eyelevel/bin/eyelevel"
  chmod +x "$home/.cache/eyelevel/bin/eyelevel"
  printf 'root:x:0:0::/:/bin/sh\n%s:x:%s:%s::%s:/bin/sh\n' "$ME" "$(id -u)" "$(id -g)" "$home" >"$ROOM/$1.passwd"
  echo "$2 $1" >>"$ROOM/hosts"
  ip address add "$2/32" dev lo
}

# Run a command on a machine.
on_machine() { # MACHINE COMMAND [ARGUMENT…]
  local name=$1
  shift
  # shellcheck disable=SC2016  # it expands inside
  MACHINE=$name exec setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc bash -euc '
    hostname "$MACHINE"
    mount --bind "$ROOM/$MACHINE.passwd" /etc/passwd
    mount --bind "$ROOM/hosts" /etc/hosts
    cd "$ROOM/$MACHINE"
    exec env --ignore-environment HOME="$PWD" USER="$ME" LOGNAME="$ME" SHELL=/bin/sh LANG=C.UTF-8 TMPDIR="$PWD/tmp" \
      PATH="$PATH" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" EYELEVEL_MEASURING_LOCK="$PWD/tmp/lock" ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} \
      setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs "$@"' bash "$@"
}
