"""Names of the preset grids, in a module that loads nothing else."""

from pathlib import Path

PRESETS_FOLDER = Path(__file__).with_name("presets")
PRESETS = tuple(sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml")))
