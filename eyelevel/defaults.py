"""Default values that both commands and workflows use."""

from pathlib import Path

from base.places import PROJECT

# The networks and protocols of 'eyelevel campaign': all of the paper's.
NETWORKS = "dsl,lte,da2gc,mss"
PROTOCOLS = "tcp,tcp+,tcp+bbr,quic,quic+bbr"

# The networks and the time budget of 'eyelevel answer'.
ANSWER_NETWORKS = "lte,fibre"
ANSWER_BUDGET = "60m"

# How often, over which protocols and on which network 'eyelevel close' loads a site.
CLOSE_LOADS = 3
CLOSE_PROTOCOLS = "tcp,quic"
CLOSE_NETWORK = "dsl"

# The site with which 'eyelevel lanes' measures how many loads can share processors.
LANES_SITE = "demo-news"

# The declaration that 'eyelevel reference' measures, and the variable that names the folder of its recordings.
DECLARATION = PROJECT / "data" / "reference.toml"
CORPUS_VARIABLE = "EYELEVEL_CORPUS"

# How many runs 'eyelevel campaign' makes of each setting, as in the paper; with auto, the maximum.
RUNS = MAX_RUNS = 31
AUTO = "auto"

# The most that 'eyelevel probe-network' sends (MB).
MOST_MB = 100.0
# The address and the port on which 'eyelevel user-study serve' listens.
USER_STUDY_ADDRESS = "127.0.0.1"
USER_STUDY_PORT = 8021
# The quiet times that 'eyelevel quiet-times' tries, in ms.
QUIET_TIMES_MS = (1000, 1500, 2000)
# The distributions of the noise of the runs that 'eyelevel simulate' makes.
NOISES = ("normal", "lognormal", "heavy")

# The licence of the numbers in a package, unless the user names another.
LICENCE = "https://creativecommons.org/licenses/by/4.0/"


def profiles() -> Path:
    """The file to which probed networks are added, unless the user names another."""
    from tuning.networks import FILENAME

    return Path("profiles") / FILENAME


# The seed of a campaign's order of blocks and of its packet losses.
SEED = 1
