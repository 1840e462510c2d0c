"""What workflows do unless the command line says otherwise, for their commands and for the workflows."""

from base.places import PROJECT

# The networks and the time of 'eyelevel answer'.
ANSWER_NETWORKS = "lte,fibre"
ANSWER_BUDGET = "60m"

# What 'eyelevel reference' measures, and the variable that says where its recordings are.
DECLARATION = PROJECT / "data" / "reference.toml"
CORPUS_VARIABLE = "EYELEVEL_CORPUS"
