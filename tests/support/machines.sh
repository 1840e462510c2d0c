# Functions that make machines out of namespaces, as an ordinary user. Proofs of clusters source this file
# (proof/test_clusters.py).
# shellcheck shell=bash
#
# The functions run in fresh user, network, mount, UTS, IPC and process namespaces, with all capabilities over them.
# Each machine has its own host name, users, processes and locks; its address is on the loopback, which all machines
# share. Programs on a machine have no capabilities. Everything ends with the first process of these namespaces.
#
# Variables of the environment name folders: ROOM has all files of the machines, PROJECT is the checkout, CACHE is the
# set-up's cache, and PROGRAMS has the unpacked packages.

LIBRARIES=$PROGRAMS/usr/lib/$(uname -m)-linux-gnu
export PATH=$PROGRAMS/usr/sbin:$PROGRAMS/usr/bin:$PROGRAMS/sbin:$PROGRAMS/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LD_LIBRARY_PATH=$LIBRARIES:$LIBRARIES/slurm-wlm
export ME=researcher SLURM_CONF=$ROOM/slurm.conf

prepare() {
  ip link set lo up
  echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
  echo "127.0.0.1 localhost" >"$ROOM/hosts"
}

# Make a machine; its user's home is that of another machine, if that is given.
make_machine() { # NAME ADDRESS [OTHER]
  local home=$ROOM/${3:-$1}
  [[ -d $home ]] || make_home "$home"
  printf 'root:x:0:0::/:/bin/sh\n%s:x:%s:%s::%s:/bin/sh\n' "$ME" "$(id -u)" "$(id -g)" "$home" >"$ROOM/$1.passwd"
  echo "$2 $1" >>"$ROOM/hosts"
  ip address add "$2/32" dev lo
}

# Make a home as it is after `make setup`: with a checkout, and a cache that has everything except keys of a cluster.
make_home() { # FOLDER
  local entry cache=$1/.cache/eyelevel
  mkdir -p "$cache/bin" "$1/.ssh" "$1/tmp"
  chmod 700 "$1" "$1/.ssh"
  ln -s "$PROJECT" "$1/eyelevel"
  [[ ! -d $HOME/.cache/matplotlib ]] || ln -s "$HOME/.cache/matplotlib" "$1/.cache/"
  for entry in "$CACHE"/*; do
    [[ ${entry##*/} == @(bin|cluster) ]] || ln -s "$entry" "$cache/"
  done
  for entry in "$CACHE"/bin/*; do
    [[ ${entry##*/} == eyelevel ]] || ln -s "$entry" "$cache/bin/"
  done
  # Run this checkout's program, since another checkout may have been set up.
  printf '#!/bin/sh\nPYTHONPATH=%s exec %s/venv/bin/python -m eyelevel "$@"\n' "$PROJECT" "$CACHE" >"$cache/bin/eyelevel"
  chmod +x "$cache/bin/eyelevel"
}

# Run a command on a machine, in its user's home, in place of this process.
on_machine() { # NAME COMMAND [ARGUMENT…]
  local name=$1
  shift
  # shellcheck disable=SC2016  # these variables expand inside
  MACHINE=$name exec setpriv --pdeathsig KILL unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc \
    bash -euc '
      hostname "$MACHINE"
      mount --bind "$ROOM/$MACHINE.passwd" /etc/passwd
      mount --bind "$ROOM/hosts" /etc/hosts
      [[ ! -d /run/lock ]] || mount -t tmpfs none /run/lock
      HOME=$(getent passwd "$ME" | cut -d: -f6)
      cd "$HOME"
      exec env --ignore-environment HOME="$HOME" USER="$ME" LOGNAME="$ME" SHELL=/bin/sh LANG=C.UTF-8 TMPDIR="$HOME/tmp" \
        PATH="$PATH" LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SLURM_CONF="$SLURM_CONF" \
        setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs "$@"' bash "$@"
}

# Wait until a command succeeds; fail when it has not within a minute.
wait_for() { # COMMAND [ARGUMENT…]
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    ! "$@" &>/dev/null || return 0
    sleep 0.2
  done
  echo "this never succeeded: $*" >&2
  return 1
}

answers() { # ADDRESS PORT
  : 2>/dev/null <"/dev/tcp/$1/$2"
}

# Let the head's user log in on these machines by SSH, with a key.
start_sshd() { # NAME…
  local name address
  ssh-keygen -q -t ed25519 -N "" -f "$ROOM/head/.ssh/id_ed25519"
  for name; do
    address=$(awk -v name="$name" '$2 == name { print $1 }' "$ROOM/hosts")
    ssh-keygen -q -t ed25519 -N "" -f "$ROOM/$name.host_key"
    cp "$ROOM/head/.ssh/id_ed25519.pub" "$ROOM/$name/.ssh/authorized_keys"
    echo "$name,$address $(cut -d' ' -f1,2 "$ROOM/$name.host_key.pub")" >>"$ROOM/head/.ssh/known_hosts"
    cat >"$ROOM/$name.sshd_config" <<END
ListenAddress $address
HostKey $ROOM/$name.host_key
PidFile none
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
SetEnv PATH=$PATH TMPDIR=$ROOM/$name/tmp
END
    (on_machine "$name" "$PROGRAMS/usr/sbin/sshd" -D -e -f "$ROOM/$name.sshd_config" >"$ROOM/$name.sshd.log" 2>&1) &
    wait_for answers "$address" 22
  done
}

# Start Slurm with these machines as its nodes, and with the head as its controller.
start_slurm() { # NAME…
  local name address port=7000 node_lines=
  mkdir -p "$ROOM/munge" "$ROOM/slurm/state"
  for name; do
    address=$(awk -v name="$name" '$2 == name { print $1 }' "$ROOM/hosts")
    mkdir "$ROOM/slurm/$name"
    node_lines+="NodeName=$name NodeAddr=$address Port=$((++port)) CPUs=$(nproc)"$'\n'
  done
  cat >"$SLURM_CONF" <<END
ClusterName=proof
SlurmctldHost=head
SlurmUser=$ME
SlurmdUser=$ME
AuthInfo=socket=$ROOM/munge/socket
PluginDir=$LIBRARIES/slurm-wlm
StateSaveLocation=$ROOM/slurm/state
SlurmdSpoolDir=$ROOM/slurm/%n
SlurmctldPidFile=$ROOM/slurm/slurmctld.pid
SlurmdPidFile=$ROOM/slurm/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
KillWait=10
${node_lines}PartitionName=measuring Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=EXCLUSIVE
END
  (umask 077 && head -c 64 /dev/urandom >"$ROOM/munge/key")
  # --force, since munged otherwise refuses a folder below others that only our user can enter.
  (on_machine head munged --foreground --force --key-file="$ROOM/munge/key" --socket="$ROOM/munge/socket" \
    --pid-file="$ROOM/munge/pid" --seed-file="$ROOM/munge/seed" >"$ROOM/munge.log" 2>&1) &
  wait_for test -S "$ROOM/munge/socket"
  (on_machine head slurmctld-wlm -D >"$ROOM/slurmctld.log" 2>&1) &
  for name; do
    (on_machine "$name" slurmd-wlm -D -d "$PROGRAMS/usr/sbin/slurmstepd-wlm" >"$ROOM/$name.slurmd.log" 2>&1) &
  done
  wait_for nodes_are_idle "$#"
}

nodes_are_idle() { # HOW_MANY
  [[ $(on_machine head sinfo --noheader --states=idle --format=%D) == "$1" ]]
}
