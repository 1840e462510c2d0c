"""Checks wording: names of values are nouns, sentences begin with their subject, and readers meet no PHRASES.

No variable, parameter or field may be named by one of PARTICIPLES. No sentence of a comment, a docstring, a text that
the program writes, a template or a document may begin with one of OPENINGS, except questions and titles of documents.
No text that the program writes, no template and no document may have one of PHRASES.

usage: check_words.py FILE…    prints each such place; fails if there is one
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PARTICIPLES = frozenset({"told", "found", "own", "apart", "left", "made", "asked", "counted", "sung", "shown"})
OPENINGS = ("What", "Of", "So many", "So much", "With what", "When what", "From what", "To what", "In what", "By what")
# Phrases that are wrong wherever a reader meets them, and what to write instead.
PHRASES = {
    r"\b(?:is|are) said like": "write … as",
    r"\bbehind (?:DSL|LTE|DA2GC|MSS|fibre)\b": "on",
    r"\bcannot be told from": "cannot be distinguished from",
    r"\bstays? as (?:it is|they are)\b": "is unchanged",
    r"\bis none of (?:the|its|his|her)\b": "is not one of",
    r"\bnobody (?:has said|sees)\b": "is unknown",
    r"\ball is done\b": "… left",
    r"\bfor want of\b": "for lack of",
    r"\bbeside the transports?\b": "besides the transport",
    r"\beach with each\b": "every … with every …",
    r"(?<![\d.,])1 (?:runs|sites|loads|checks|networks|protocols|attempts|files|requests|servers|warnings)\b": "1 run",
    r"(?<!here )\bis no (?:campaign|file|folder|name|package|recording|site|table)\b": "is not a",
    r"\bso you need not\b": "you can skip this",
    r"\bwhoever comes\b": "a second one is refused",
    r"\bknows? (?:it|them) again\b": "recognises",
}
# A sentence begins at the start of a comment, a docstring, a list item or a table cell, or after another sentence.
BEGINNING = re.compile(
    rf"""(?:^[\s#/*!|>"'-]*|\|\s+|[.!?:][*_)"]*\s+|\(|"{{3}})((?:{"|".join(OPENINGS)})\b)""", re.MULTILINE
)
# Comments of languages that are not Python.
COMMENTS = {".rs": "//", ".cc": "//", ".h": "//", ".js": "//", ".mjs": "//", ".sh": "#", ".toml": "#", ".csv": "#"}
# A string of fewer words is no sentence.
LEAST_WORDS = 4
TAG = re.compile(r"<[^>]*>|{[%{#].*?[%}#]}")


def main(files: list[str]) -> int:
    places = [f"{file}:{line}: {fault}" for file in map(Path, files) for line, fault in sorted({*faults(file)})]
    print(*places, sep="\n" if places else "")
    return 1 if places else 0


def faults(file: Path) -> Iterator[tuple[int, str]]:
    """The line and the description of each fault in a file."""
    source = file.read_text()
    if file.suffix == ".py":
        yield from participles(source)
        texts = python_texts(source, has_messages="tests" not in file.parts)
    elif file.suffix == ".md":
        texts = document_texts(source)
    elif file.suffix == ".j2":
        # A sentence may begin after a tag.
        texts = document_texts(TAG.sub(" | ", source))
    else:
        texts = comments(source, COMMENTS[file.suffix])
    for line, text in texts:
        yield from ((line + before, opening) for before, opening in openings(text))
    for line, text in read_texts(source, file):
        yield from ((line + before, fault) for before, fault in phrases(text))


def participles(source: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each value that is named by a participle."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                if name.strip("_") in PARTICIPLES:
                    yield node.lineno, name


def openings(text: str) -> Iterator[tuple[int, str]]:
    """The line, from 0, and the first words of each sentence of `text` that does not begin with its subject."""
    for begin in (match.start(1) for match in BEGINNING.finditer(text)):
        sentence = re.split(r"[.!?:](?:\s|$)", text[begin:], maxsplit=1)[0]
        end = begin + len(sentence)
        if text[end : end + 1] != "?":
            yield text.count("\n", 0, begin), " ".join(sentence.split())[:60]


def read_texts(source: str, file: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of everything in `file` that a reader may meet: documents, templates and texts of the
    program, its docstrings included, which are the helps of commands."""
    if file.suffix in (".md", ".j2"):
        yield 1, source
    elif file.suffix == ".py" and "tests" not in file.parts:
        yield from messages(source)


def messages(source: str) -> Iterator[tuple[int, str]]:
    """The first line and the text of each string of several words, with X for each value in it."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.JoinedStr(values=parts):
                yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in parts)
            case ast.Constant(value=str(text)) if len(text.split()) >= LEAST_WORDS:
                yield node.lineno, text


def phrases(text: str) -> Iterator[tuple[int, str]]:
    """The line, from 0, of each of PHRASES in `text`, with what to write instead."""
    one_line = text.replace("\n", " ")  # a phrase may be broken between two lines
    for phrase, better in PHRASES.items():
        for match in re.finditer(phrase, one_line, re.IGNORECASE):
            yield text.count("\n", 0, match.start()), f"{match[0]!r}; write {better!r}"


def python_texts(source: str, *, has_messages: bool) -> Iterator[tuple[int, str]]:
    """The first line and the text of each docstring and each comment, whose lines are joined, and of the other strings
    if it `has_messages`, with X for each value in them."""
    yield from messages(source) if has_messages else ()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str(text))) as docstring:
                    yield docstring.lineno, text
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from _together((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def comments(source: str, mark: str) -> Iterator[tuple[int, str]]:
    """The first line and the text of each comment on its own lines in `source`; `mark` begins such a line."""
    lines = enumerate(source.splitlines(), start=1)
    yield from _together((number, line.strip()) for number, line in lines if line.strip().startswith(mark))


def _together(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    first, text, last = 0, "", -1
    for number, line in lines:
        if number == last + 1:
            text += "\n" + line
        else:
            if text:
                yield first, text
            first, text = number, line
        last = number
    if text:
        yield first, text


def document_texts(source: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a document: no titles, and no blocks of code."""
    is_code = False
    for number, line in enumerate(source.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("#"):
            yield number, line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
