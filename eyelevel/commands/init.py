"""`eyelevel init`: make a folder of the user's own, in which everything works as in the checkout."""

import shlex
from pathlib import Path

import click

from base.errors import EyelevelError
from base.files import replacing_folder
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
    """Make FOLDER, with settings, a list of sites, a plan and a Makefile of your own. In it, everything works as in
    the checkout, and sites and results stay there. FOLDER must be new or empty, and outside the checkout.

    Example: eyelevel init my-measurements
    """
    if folder.resolve().is_relative_to(PROJECT):
        raise EyelevelError(f"{folder} is in the checkout {PROJECT}; name a folder outside")
    if folder.is_dir() and any(folder.iterdir()):
        raise EyelevelError(f"{folder} is not empty; name a new folder")
    checkout = shlex.quote(str(PROJECT)).replace("$", "$$").replace("#", "\\#")
    files = {
        OWN_MARK: "'eyelevel' uses the sites and the results of this folder, here and in folders below.\n",
        "README.md": README,
        "Makefile": MAKEFILE.format(checkout=checkout),
        "plan.toml": (PROJECT / HYPOTHESES_FILE).read_text(),
        "sites.txt": SITES,
        "tuning/networks.toml": NETWORKS,
        "tuning/protocols.toml": PROTOCOLS,
    }
    with replacing_folder(folder) as new:
        (new / "tuning").mkdir()
        (new / "sites").mkdir()
        for name, text in files.items():
            (new / name).write_text(text)
    give_to_caller(folder)
    click.echo(f"{folder}: made; README.md in it says how to begin")
