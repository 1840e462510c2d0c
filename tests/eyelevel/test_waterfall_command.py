"""`eyelevel waterfall` on two campaigns: one run of each, and which is which."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from factories import ROW, campaign_document

from dataset.run_files import HAR
from dataset.table import header, lines, write_document
from eyelevel.commands.waterfall import main as waterfall


def campaign(folder: Path, url: str, protocols: tuple[str, ...] = ("tcp", "quic")) -> Path:
    """A campaign with a run of site s over each of `protocols`, each with a request for `url`."""
    rows = [replace(ROW, protocol=name, folder=f"runs/s/lte/{name}/1-1") for name in protocols]
    request = {
        "startedDateTime": "2026-01-01T00:00:00.010Z",
        "request": {"method": "GET", "url": url},
        "response": {"httpVersion": "h2", "status": 200, "content": {}, "bodySize": 900},
        "timings": {"send": 1, "wait": 60, "receive": 5},
    }
    har = {"log": {"pages": [{"id": "1", "startedDateTime": "2026-01-01T00:00:00Z"}], "entries": [request]}}
    for row in rows:
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / HAR).write_bytes(gzip.compress(json.dumps(har).encode()))
    (folder / "runs.csv").write_text(header() + lines(rows))
    write_document(folder, campaign_document())
    return folder


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return campaign(tmp_path / "before", "https://a.example/old.js")


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return campaign(tmp_path / "after", "https://a.example/new.js", ("quic",))


def called(*arguments: object) -> Result:
    return CliRunner().invoke(waterfall, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("chosen", "first"),
    [(("--proto", "quic"), "quic"), (("--proto", "tcp,quic"), "tcp"), (("--run", "quic/1-1"), "quic")],
)
def test_the_first_run_is_of_the_campaign_and_the_second_of_the_other(
    before: Path, after: Path, chosen: tuple[str, str], first: str
) -> None:
    done = called(before, "--against", after, *chosen)
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.strip())
    assert page.parent == before / "waterfalls" / f"before-s-lte-{first}-1-1-after-quic-1-1"
    assert "old.js" in (page.parent / f"a-{first}-1-1.har").read_text()
    assert "new.js" in (page.parent / "b-quic-1-1.har").read_text()
    text = page.read_text()
    assert "run 1 of before and QUIC run 1 of after" in text
    assert text.count("only in A") >= 1 and text.count("only in B") >= 1


def test_a_run_that_the_other_campaign_lacks_is_refused(before: Path, after: Path) -> None:
    done = called(before, "--against", after, "--proto", "tcp")
    assert done.exit_code != 0
    assert "over tcp counts" in str(done.exception)


def test_two_runs_of_one_campaign_do_not_name_it(before: Path) -> None:
    done = called(before, "--proto", "tcp,quic")
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.strip())
    assert page.parent.name == "s-lte-tcp-1-1-quic-1-1"
    assert "before" not in page.read_text().partition("<main>")[2].partition("</main>")[0]
