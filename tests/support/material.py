"""Finds recordings, films and numbers that some tests read and that are not part of this project.

The corpus is the folder named by EYELEVEL_CORPUS, or `shared/corpus` next to the checkout. It contains `mahimahi/`
(folders of save.* files), `warc/` and `har/`. The numbers of published studies are in `reference/` next to it. The
films are those below the folder named by EYELEVEL_FILMS, for example one with campaigns.
"""

import os
from pathlib import Path

from base.places import PROJECT
from dataset.run_files import FILM

CORPUS_VARIABLE = "EYELEVEL_CORPUS"
FILMS_VARIABLE = "EYELEVEL_FILMS"
FORMATS = ("mahimahi", "warc", "har")

_FOLDER = Path(os.environ.get(CORPUS_VARIABLE) or PROJECT.parent / "shared" / "corpus").resolve()

# None if there is no corpus.
CORPUS = _FOLDER if any((_FOLDER / form).is_dir() for form in FORMATS) else None
REFERENCE = _FOLDER.parent / "reference"


def recording_path(name: str) -> Path:
    """The path of a recording in the corpus, such as "mahimahi/www.yelp.com"; only for tests that need the corpus."""
    return _FOLDER / name


def recording_names() -> list[str]:
    """The names of all recordings in the corpus; none if there is no corpus."""
    return sorted(f"{form}/{path.name}" for form in FORMATS for path in (_FOLDER / form).glob("*"))


def film_paths() -> list[Path]:
    """The films of campaigns; none if no folder is named."""
    folder = os.environ.get(FILMS_VARIABLE)
    return sorted(Path(folder).resolve().rglob(FILM)) if folder else []
