"""`eyelevel init`: make a folder of the user's own, in which make works as in the checkout."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from base.errors import EyelevelError
from base.files import sync_file_system
from base.ownership import give_to_caller
from base.places import OWN_MARK, PROJECT
from eyelevel.options import HYPOTHESES_FILE, parameters_of

NETWORK, PROTOCOL = "my-network", "my-protocol"
MAKEFILE = """\
# Targets and variables are those of Eyelevel's checkout ('make help'). They read and write this folder.
CHECKOUT := {checkout}
export EYELEVEL_FOLDER := $(CURDIR)
export EYELEVEL_TUNING := $(CURDIR)/tuning
GOALS := $(or $(MAKECMDGOALS),help)

.PHONY: checkout $(GOALS)
$(GOALS): checkout ;
checkout:
	@$(MAKE) --no-print-directory -C $(CHECKOUT) $(GOALS)
"""
README = f"""\
# My measurements with Eyelevel

| | |
|---|---|
| `tuning/` | networks and protocols of your own: `make networks` and `make protocols` list them, too |
| `sites.txt`, `sites/` | pages to record, and their recordings |
| `plan.toml` | the questions of a campaign, which it copies before its first run |
| `results/` | campaigns |
| `Makefile` | calls the checkout, whose path it has |

```sh
make record
make validate NET={NETWORK} PROTO={PROTOCOL} QUICK=yes
make campaign NET={NETWORK} PROTO=tcp+,{PROTOCOL} SITES=demo-light RUNS=5 HYPOTHESES=plan.toml CAMPAIGN=first
make report CAMPAIGN=first
```

`make help` lists everything else. `eyelevel` works here, too; name the settings with `--tuning tuning`.
"""
NETWORKS = f"""\
# Networks of your own; docs/options/keys-of-networks.md in the checkout explains the keys.
[{NETWORK}]
down_mbps = 20
up_mbps = 5
min_rtt_ms = 40
queue_ms = 100
source = "an example: where do your numbers come from?"
"""
PROTOCOLS = f"""\
# Protocols of your own; docs/options/keys-of-protocols.md in the checkout explains the keys.
[{PROTOCOL}]
like = "tcp+"
initial_window_packets = 64
"""
SITES = """\
# Pages that 'make record' records: NAME URL
gnu https://www.gnu.org/
"""


@click.command(params=parameters_of("init"))
def main(folder: Path) -> None:
    """Make FOLDER, with settings, a list of sites, a plan and a Makefile of your own. In it, make works as in the
    checkout, and sites and results stay there. FOLDER must be new or empty, and outside the checkout.

    Example: eyelevel init ../my-measurements
    """
    if folder.resolve().is_relative_to(PROJECT):
        raise EyelevelError(f"{folder} is in the checkout {PROJECT}; name a folder outside")
    checkout = shlex.quote(str(PROJECT)).replace("$", "$$").replace("#", "\\#")
    files = {
        "README.md": README,
        "Makefile": MAKEFILE.format(checkout=checkout),
        "plan.toml": (PROJECT / HYPOTHESES_FILE).read_text(),
        "sites.txt": SITES,
        "tuning/networks.toml": NETWORKS,
        "tuning/protocols.toml": PROTOCOLS,
        # The last, since it makes the folder count.
        OWN_MARK: "'eyelevel' uses the sites and the results of this folder, here and in folders below.\n",
    }
    try:
        is_new = not folder.exists()
        if not is_new and any(folder.iterdir()):
            raise EyelevelError(f"{folder} is not empty; name a new folder")
        _write(folder, files, is_new=is_new)
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written: {error.strerror}") from None
    give_to_caller(folder)
    click.echo(f"{folder}: made; README.md in it says how to begin")


def _write(folder: Path, files: Mapping[str, str], *, is_new: bool) -> None:
    """Write `files` into `folder`, all or none. A folder that is there stays itself: it may be a mount point, a link,
    or the working folder. Raises OSError."""
    below = [folder / "sites", folder / "tuning"]
    try:
        for path in below:
            path.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        sync_file_system(folder)
    except BaseException:
        for name in files:
            with suppress(OSError):
                (folder / name).unlink()
        for path in (*below, *([folder] if is_new else [])):
            with suppress(OSError):
                path.rmdir()
        raise
