"""Campaigns that declared other thresholds than the current file."""

import re
from dataclasses import replace
from pathlib import Path

from analysis.hypotheses import DECLARED
from dataset.declaration import declaration, keep_hypotheses
from dataset.table import require_document, write_document


def declare(folder: Path, **thresholds: float) -> None:
    """Change the campaign in `folder` so that it declared these `thresholds` before its first run."""
    text = DECLARED.read_text()
    for name, value in thresholds.items():
        text, lines = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        assert lines == 1, name
    keep_hypotheses(folder, text)
    document = require_document(folder)
    write_document(folder, replace(document, hypotheses=declaration(text, document.settings)))
