"""Hooks by which mkdocs makes a website of this project's documents, which are written to be read as plain files.

Documents lie next to their subjects, not in one folder. They link to source files, and indent the contents of list
items by the width of the marker.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("*.md", "docs/**/*.md", "*/README.md", "*/*/README.md")
PICTURES = ("docs/**/*.jpg", "docs/**/*.png", "docs/**/*.svg")
FURTHER_FILES = (*PICTURES, "data/*/report/**/*.*", "setup/docs.css", "setup/docs.js")
LINK = re.compile(r"(?<!!)\[([^\]\[]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
# Elements that make a browser load a part of a page from another host.
OUTSIDE = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
# Names in the first column of a table.
NAMES = re.compile(r"<td>(?:<a [^>]*>)?(?:<code>\w+</code>(?:</a>)?(?:, )?)+")
EMPTY_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th></th>\s*)*</tr>\s*</thead>")
FENCE = re.compile(r" *```")
MARKER = re.compile(r"([-*]|\d+\.) +(?=\S)")
# The indentation that Python's Markdown library requires within list items.
INDENTATION = " " * 4


def on_files(files: Any, config: Any) -> Files:
    """The theme's files, and all documents and pictures at their paths in the project."""
    theirs = [file for file in files if file.src_dir != config.docs_dir]
    folders = ("build", "results", "sites")
    ours = [
        path.relative_to(PROJECT)
        for pattern in (*DOCUMENTS, *FURTHER_FILES)
        for path in PROJECT.glob(pattern)
        if path.relative_to(PROJECT).parts[0] not in folders
    ]
    return Files(
        [
            *theirs,
            *(
                File(path.as_posix(), str(PROJECT), config.site_dir, config.use_directory_urls)
                for path in dict.fromkeys(ours)
            ),
        ]
    )


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page, with links to source files replaced by their names, and lists indented as the library
    requires."""
    folder = posixpath.dirname(page.file.src_uri)

    def named(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        is_source = files.get_file_from_path(target) is None and (PROJECT / target).exists()
        return link[1] if is_source else link[0]

    return LINK.sub(named, "\n".join(indented(markdown.split("\n"))))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The HTML of a page, without empty table heads, with a label for each element that acts as a dialog, and with
    names in tables that may be broken after a low line.

    Raises PluginError if the page would load anything from another host.
    """
    if request := OUTSIDE.search(output):
        raise PluginError(f"{page.file.src_uri} asks others for something: {request[0]}")
    output = NAMES.sub(lambda names: re.sub(r"_(?=\w*</code>)", "_<wbr>", names[0]), output)
    output = EMPTY_HEAD.sub("", output).replace("<th></th>", "<td></td>")
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def indented(lines: list[str]) -> list[str]:
    """`lines` with four spaces before everything that belongs to a list item, at every depth."""
    result: list[str] = []
    rest = list(lines)
    fenced = False
    while rest:
        line = rest.pop(0)
        result.append(line)
        fenced ^= bool(FENCE.match(line))
        marker = None if fenced else MARKER.match(line)
        if not marker:
            continue
        inner = []
        while rest and (not rest[0].strip() or rest[0].startswith("  ")):
            text = rest.pop(0)
            inner.append(text[min(marker.end(), len(text) - len(text.lstrip())) :])
        result += [f"{INDENTATION}{text}" if text.strip() else "" for text in indented(inner)]
    return result
