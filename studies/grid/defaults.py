"""The names of the grids that are presets, for who only names them."""

from pathlib import Path

PRESETS_FOLDER = Path(__file__).with_name("presets")
PRESETS = tuple(sorted(path.stem for path in PRESETS_FOLDER.glob("*.toml")))
