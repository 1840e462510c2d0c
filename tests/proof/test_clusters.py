"""The commands in docs/parallel.md work exactly as written there: campaigns over SSH and Slurm stay exact even if
workers die.

A user without root runs them, on machines that are namespaces (support/machines.sh): the head with `eyelevel scheduler`
and `eyelevel campaign`, and two workers started by `sshd` or by Slurm's jobs.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.campaigns import assert_whole, rows
from support.needs import CLUSTER_PROGRAMS

from base.namespaces import unshare
from base.places import PROJECT, cache_dir, tool

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_cluster_programs, pytest.mark.loads(group="clusters")]

DOCUMENT = PROJECT / "docs" / "parallel.md"
LIBRARY = Path(__file__).parent.parent / "support" / "machines.sh"
KINDS = ("net", "mount", "uts", "ipc", "pid")
LIMIT_S = 2400
# Enough runs for workers to be measuring after a minute.
SLURM_RUNS = 8

# The folder that exists on a machine while its worker measures a block (measure.campaign.remote).
MEASURED_BLOCK = "tmp/eyelevel-cluster-*/*/*/block-*/runs"


def commands(section: str) -> list[str]:
    """The blocks of commands in a section of the document."""
    text = DOCUMENT.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.MULTILINE)
    return [re.sub("^    ", "", block, flags=re.MULTILINE).strip("\n") for block in blocks]


def campaign(folder: Path, runs: int) -> str:
    """The command that measures on the cluster, and writes its output to campaign.log."""
    options = "--net dsl --proto tcp,quic --sites demo-light --repeats 30 --films all --plain --trust-workers"
    place = f"--campaign proof --runs {runs} --results {folder}"
    log = folder / "campaign.log"
    return f"~/.cache/eyelevel/bin/eyelevel campaign {options} {place} --dask tls://10.0.0.1:8786 >{log} 2>&1"


def run_on_machines(room: Path, setting: str, head: str) -> None:
    """Run two scripts in the folder `room`: `setting`, which makes the machines, and then `head`, on the machine that
    has the name head."""
    (room / "head.sh").write_text(f"set -eu\ncd ~\n{head}\n")
    script = f"set -euo pipefail\n. {LIBRARY}\nprepare\n{setting}\n(on_machine head sh {room / 'head.sh'})\n"
    (room / "room.sh").write_text(script)
    # Our user becomes another one without root's rights anywhere, even if it is root.
    user = ("--user", "--map-user=1000", "--map-group=1000", "--keep-caps")
    kinds = [f"--{kind}" for kind in KINDS]
    namespaces: list[str | Path] = [unshare(), *user, *kinds, "--fork", "--kill-child", "--mount-proc"]
    command: list[str | Path] = [tool("setpriv"), "--pdeathsig", "KILL", *namespaces, "bash", room / "room.sh"]
    places = {"ROOM": room, "PROJECT": PROJECT, "CACHE": cache_dir().resolve(), "PROGRAMS": CLUSTER_PROGRAMS}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}}
    with (room / "log").open("wb") as log:
        outcome = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=LIMIT_S,
            check=False,
        )
    logs = {path: path.read_text(errors="replace")[-3000:] for path in room.rglob("*.log")}
    logs[room / "log"] = (room / "log").read_text(errors="replace")[-3000:]
    assert outcome.returncode == 0, "\n".join(f"== {path}\n{text}" for path, text in logs.items())


def assert_exact(folder: Path, runs: int, machines: set[str]) -> None:
    assert_whole(folder / "proof", runs=2 * runs)
    names = {row["machine"].rpartition("-")[0] for row in rows(folder / "proof")}
    assert names == machines
    assert "no longer responds; block" in (folder / "campaign.log").read_text()


def test_workers_by_ssh_of_which_one_is_killed(tmp_path: Path) -> None:
    keys, start, end = commands("Machines reached by SSH")
    workers_only = start.partition("\n")[2]
    run_on_machines(
        tmp_path,
        setting="""
            make_machine head 10.0.0.1
            make_machine worker1 10.0.0.2
            make_machine worker2 10.0.0.3
            start_sshd worker1 worker2
            """,
        head=f"""
printf 'worker1\\nworker2\\n' >hosts
{keys}
{start}
{campaign(tmp_path, runs=4)} &
campaign=$!
until ssh -n worker1 'ls -d {MEASURED_BLOCK}' >/dev/null 2>&1; do
  kill -0 $campaign
  sleep 0.2
done
ssh -n worker1 "pkill -KILL -f '[e]yelevel worker'"
echo worker1 >hosts
{workers_only}
wait $campaign
printf 'worker1\\nworker2\\n' >hosts
{end}
""",
    )
    assert_exact(tmp_path, 4, {"worker1", "worker2"})


def test_workers_by_slurm_whose_jobs_reach_their_time_limit(tmp_path: Path) -> None:
    worker, start = commands("Slurm")
    run_on_machines(
        tmp_path,
        setting="""
            make_machine head 10.0.0.1
            make_machine node1 10.0.0.2 head
            make_machine node2 10.0.0.3 head
            start_slurm node1 node2
            """,
        head=f"""
cat >worker.sh <<'END'
{worker}
END
~/.cache/eyelevel/bin/eyelevel cluster-keys
{start}
{campaign(tmp_path, runs=SLURM_RUNS)} &
campaign=$!
until ls -d {MEASURED_BLOCK} >/dev/null 2>&1; do
  kill -0 $campaign
  sleep 0.2
done
# Shorten the time limit of these two jobs, as if they had been submitted with it. Later jobs wait for the nodes.
for job in $(squeue --noheader --name=eyelevel --states=RUNNING --format=%A); do
  scontrol update JobId=$job TimeLimit=1
done
wait $campaign
scancel --name=eyelevel
""",
    )
    assert_exact(tmp_path, SLURM_RUNS, {"node1", "node2"})
    outputs = "".join(path.read_text() for path in (tmp_path / "head").glob("slurm-*.out"))
    assert outputs.count("DUE TO TIME LIMIT") == 2
