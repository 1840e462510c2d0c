"""The sentences on a recording's age and on the versions of HTTP that its servers spoke."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.recordings import HTML, PAGE, har_entry, save_file

from eyelevel.commands.import_ import import_recording
from record.demo import generate
from record.provenance import provenance
from record.site import write_site

DATE = "Thu, 03 Mar 2016 08:00:00 GMT"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def entry(version: str, url: str) -> dict[str, Any]:
    whole = har_entry(url, text="<p>", mimeType="text/html")
    whole["response"] |= {"httpVersion": version}
    return whole | {
        "startedDateTime": "2016-03-03T08:00:00Z",
        "serverIPAddress": "192.0.2.1",
        "timings": {"connect": 60, "ssl": 30},
    }


def test_an_old_recording_says_its_age_and_what_its_servers_spoke(tmp_path: Path) -> None:
    mahimahi = tmp_path / "old"
    mahimahi.mkdir()
    (mahimahi / "save.0").write_bytes(save_file(headers=(HTML, ("Date", DATE))))
    age = "The page was recorded on 3 March 2016, 10 years ago: today's site may differ."
    first, second = provenance(import_recording(mahimahi, tmp_path / "a"), NOW)
    assert (first, second[: second.index(";")]) == (age, "Its recorder spoke HTTP/1.1 with the servers")
    archive = tmp_path / "x.har"
    entries = [entry("HTTP/2.0", "https://a.example/"), entry("http/1.1", "https://b.example/")]
    archive.write_text(json.dumps({"log": {"entries": entries}}))
    first, second = provenance(import_recording(archive, tmp_path / "b"), NOW)
    assert first == age and second.startswith("Its servers spoke HTTP/2 and HTTP/1.1; a replay ")
    assert provenance(import_recording(archive, tmp_path / "c"), datetime(2016, 4, 1, tzinfo=UTC))[0] == (
        "The page was recorded on 3 March 2016."
    )


def test_what_a_recording_does_not_say_is_said_to_be_unknown(tmp_path: Path) -> None:
    undated = tmp_path / "undated"
    undated.mkdir()
    (undated / "save.0").write_bytes(save_file())
    assert provenance(import_recording(undated, tmp_path / "b"))[0].startswith("The recording does not say when it was")
    archive = tmp_path / "x.warc"
    archive.write_bytes(PAGE)
    first, second = provenance(import_recording(archive, tmp_path / "a"))
    assert first.startswith("The page was recorded on 1 January 2026")  # the date of the archive's record
    assert second == "The recording does not say which versions of HTTP its servers spoke."


def test_a_generated_site_has_no_age(tmp_path: Path) -> None:
    assert provenance(write_site(generate("demo-light"), tmp_path / "demo-light")) == []
