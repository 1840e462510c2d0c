"""A site's page script: a few steps that are made in its page in each load, such as accepting cookies.

It is the body of an async JavaScript function. Its functions `click`, `fill`, `wait`, `gone` and `loaded` are steps
(`page_script.js`). `env.NAME` is a value to fill in: taken from the environment while the page is recorded, and
PLACEHOLDER in every load of the recording, so that real values are stored nowhere. Standard library only.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from base.bounded import read_regular
from base.errors import EyelevelError
from base.text import printable

RUNNER = Path(__file__).with_name("page_script.js")
# The script's state, stored in the page's document (`page_script.js`).
STATE = 'window[Symbol.for("eyelevel.page_script")]'
SCRIPT_BYTES = 64 << 10
# The script is inserted into HTML documents, where these texts would end it or hide what follows.
NOT_IN_HTML = re.compile("</script|<!--", re.IGNORECASE)
VALUE = re.compile(r"\benv\.([A-Za-z_][A-Za-z0-9_]*)")
# Pages accept this value as an address, a name, and most passwords.
PLACEHOLDER = "Visitor-1@page.example"
# A shorter value would also occur in unrelated content.
LEAST_LETTERS = 4


def read_page_script(path: Path) -> str:
    """The page script in the file `path`. Raises EyelevelError when it cannot be read or put into a page."""
    try:
        text = read_regular(path, SCRIPT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise EyelevelError(f"{_shown(path)} is not UTF-8: its byte {error.start} is not") from None
    except OSError as error:
        raise EyelevelError(f"{_shown(path)} cannot be read: {error.strerror or error}") from None
    if refused := NOT_IN_HTML.search(text):
        raise EyelevelError(f"{_shown(path)} has {refused[0]}, which cannot be in a script of HTML; write it otherwise")
    return text


def values_of(script: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variable → the value that `script` fills in. Raises EyelevelError."""
    names = dict.fromkeys(VALUE.findall(script))
    if missing := [name for name in names if len(environment.get(name, "")) < LEAST_LETTERS]:
        raise EyelevelError(
            f"the page script fills in {' and '.join(missing)}: set these variables of the environment to values of "
            f"at least {LEAST_LETTERS} letters, since shorter ones cannot be kept out of the recording"
        )
    return {name: environment[name] for name in names}


def placeholders(script: str) -> dict[str, str]:
    """A stand-in for each value that `script` fills in."""
    return dict.fromkeys(VALUE.findall(script), PLACEHOLDER)


def runnable(script: str, values: Mapping[str, str]) -> str:
    """A classic script that runs the page script `script` with `values` in its document."""
    lines = (line.strip() for line in RUNNER.read_text().splitlines())
    runner = "\n".join(line for line in lines if line and not line.startswith("//"))
    # A value may contain a tag.
    given = json.dumps(dict(values)).replace("<", "\\u003c")
    return f"{runner}({given}, async ({{ click, fill, wait, gone, loaded, env }}) => {{\n{script}\n}});"


def _shown(path: Path) -> str:
    return printable(str(path))
