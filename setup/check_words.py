"""Names of values are nouns: no variable, parameter or field is called by one of the participles below.

usage: check_words.py FILE…    prints the place of each such name; fails if there is one
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PARTICIPLES = frozenset({"told", "found", "own", "apart", "left", "made", "asked", "counted", "sung", "shown"})


def main(files: list[str]) -> int:
    places = [f"{file}:{line}: {name}" for file in files for line, name in faults(Path(file).read_text())]
    print(*places, sep="\n" if places else "")
    return 1 if places else 0


def faults(source: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each value that is called by a participle."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                if name.strip("_") in PARTICIPLES:
                    yield node.lineno, name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
