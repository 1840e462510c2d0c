"""The machine that runs are made on."""
