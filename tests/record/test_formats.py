"""A new format takes one file: no other line of the project changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT
from record import formats
from record.formats import name_of
from record.names import site_folder
from record.site import Site

TOY = '''
"""Pages as text: the first line is the URL, the rest is the page."""

from record.assemble import assemble
from record.http1 import Response
from record.intake import Intake
from record.site import Exchange

NAME = "toy"
DESCRIPTION = "a toy"
ENDINGS = (".toy", ".toy.txt")


def recognises(path):
    return path.name.endswith(ENDINGS)


def read(path, *, keep_cookies=False):
    url, _, page = path.read_text().partition("\\n")
    intake = Intake(path.name, keep_cookies=keep_cookies)
    response = Response(200, "OK", (("Content-Type", "text/html"),), page.encode())
    intake.take(url, lambda: Exchange("GET", url, response, "192.0.2.1"))
    return assemble(intake, {"tool": "toy"})


def write(site, path):
    (exchange,) = site.exchanges
    path.write_text(exchange.url + "\\n" + site.recorded(exchange).response.body.decode())
'''

# Adds the file to the folder `record/formats`. The sites go to a folder of the test.
PROGRAM = """
import sys
from pathlib import Path
import base.places, record.formats
base.places.SITES = Path(sys.argv.pop(1))
record.formats.__path__.append(sys.argv.pop(1))
from eyelevel.program import main
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the file of a toy format and one recording in this format."""
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "toy.py").write_text(TOY)
    (tmp_path / "page.toy.txt").write_text("https://toy.example/\n<p>")
    return tmp_path


def eyelevel(folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The program's answer, with the toy format in `folder`."""
    command = [sys.executable, "-c", PROGRAM, folder / "sites", folder / "formats", *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


def test_a_site_goes_through_a_new_format_and_back(folder: Path) -> None:
    answer = eyelevel(folder, "import", folder / "page.toy.txt")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("page: ") and "starts at https://toy.example/" in answer.stdout
    site = Site.load(folder / "sites" / "page")
    assert (site.url, site.recorder["tool"]) == ("https://toy.example/", "toy")
    answer = eyelevel(folder, "export", "page", "--as", "toy", "--into", folder / "again.toy")
    assert answer.returncode == 0, answer.stderr
    assert (folder / "again.toy").read_text() == (folder / "page.toy.txt").read_text()


def test_help_and_errors_name_a_new_format(folder: Path) -> None:
    assert "a toy (.toy, .toy.txt)" in eyelevel(folder, "import", "--help").stdout
    assert "har|mahimahi|toy" in eyelevel(folder, "export", "--help").stdout
    (folder / "unknown").write_text("")
    answer = eyelevel(folder, "import", folder / "unknown")
    assert answer.returncode == 1
    assert "a toy (.toy, .toy.txt)" in answer.stderr and answer.stderr.count("\n") == 1


def test_a_module_that_is_no_whole_format_is_named(folder: Path) -> None:
    (folder / "formats" / "toy.py").write_text('NAME = "toy"\n')
    assert "record/formats/toy.py lacks" in eyelevel(folder, "import", "--help").stderr


def test_what_can_be_recognised_by_its_name_is_tried_first() -> None:
    assert [form.NAME for form in formats.formats()] == ["har", "wacz", "warc", "mahimahi", "responses"]


@pytest.mark.parametrize(
    ("source", "name"),
    [("a.example.har", "a.example"), ("a.warc", "a"), ("a.warc.gz", "a"), ("www.a.example", "www.a.example")],
)
def test_a_site_has_the_name_of_its_source_without_the_ending(source: str, name: str, tmp_path: Path) -> None:
    assert name_of(tmp_path / source) == name


@pytest.mark.case("name-of-a-saved-archive")
@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("shop.example_Archive [26-03-01 10-00-00].har", "shop.example_Archive-26-03-01-10-00-00"),
        ("(1) Größe, neu.warc.gz", "1-Größe-neu"),
        ("x@y.har", "x@y"),
        (f"{'long ' * 40}.har", ("long-" * 40)[:100]),
    ],
)
def test_a_recording_of_any_name_gives_a_site_a_name_that_it_can_have(source: str, name: str, tmp_path: Path) -> None:
    assert site_folder(name_of(tmp_path / source)).name == name
