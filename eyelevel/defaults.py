"""The defaults of workflows unless the command line says otherwise, for their commands and for the workflows."""

from pathlib import Path

from base.places import PROJECT

# The networks and the time of 'eyelevel answer'.
ANSWER_NETWORKS = "lte,fibre"
ANSWER_BUDGET = "60m"

# How often, and over which protocols and network, 'eyelevel close' loads a site.
CLOSE_LOADS = 3
CLOSE_PROTOCOLS = "tcp,quic"
CLOSE_NETWORK = "dsl"

# The declaration that 'eyelevel reference' measures, and the variable that says where its recordings are.
DECLARATION = PROJECT / "data" / "reference.toml"
CORPUS_VARIABLE = "EYELEVEL_CORPUS"

# How many runs 'eyelevel campaign' makes of each setting, as in the paper; with auto, at most this many.
RUNS = MAX_RUNS = 31
AUTO = "auto"

# How much 'eyelevel probe-network' sends at most (MB).
MOST_MB = 100.0
# Where 'eyelevel user-study serve' listens.
USER_STUDY_PORT = 8021


# The licence of the numbers of a package, unless another is named.
LICENCE = "https://creativecommons.org/licenses/by/4.0/"


def profiles() -> Path:
    """The file to which probed networks are added unless another is named."""
    from tuning.networks import FILENAME

    return Path("profiles") / FILENAME


# The seed of a campaign's order and losses.
SEED = 1
