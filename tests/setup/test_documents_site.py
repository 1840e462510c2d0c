"""The website of the documents (`make docs`) in a real browser is accessible."""

import os
import subprocess
from pathlib import Path

import pytest
from support.axe import accessible
from support.browser import Browser

from base.places import PROJECT, tool

pytestmark = [pytest.mark.needs_mkdocs, pytest.mark.needs_axe, pytest.mark.slow]

# The start page, one with films and figures, one with a long listing, and tables of all kinds.
OPTIONS = "docs/options/campaign.html"
PAGES = ("index.html", "docs/first-hour.html", "docs/faq.html", OPTIONS, "docs/glossary.html", "docs/validation.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [str(tool("mkdocs")), "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=PROJECT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_everybody_can_read_the_documents(browser: Browser, site: Path, page: str) -> None:
    assert accessible(browser, (site / page).as_uri()) == []
