"""Files of somebody's campaign are read to a limit, without waiting, and through no link."""

import gzip
import os
from pathlib import Path

import pytest

from base.errors import EyelevelError
from dataset import reading
from dataset.reading import read_bytes, read_object, read_text


def test_what_is_there_is_read_unpacked_if_it_is_packed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": "\u00e9"}')
    (tmp_path / "a.json.gz").write_bytes(gzip.compress('{"a": "\u00e9"}'.encode()))
    assert read_object(tmp_path / "a.json") == read_object(tmp_path / "a.json.gz") == {"a": "\u00e9"}
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "nothing")


def test_a_pipe_a_device_and_a_link_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to("real.csv")
    for name in ("pipe", "device", "link"):
        with pytest.raises(EyelevelError, match=rf"{name}\.csv cannot be read: "):
            read_text(tmp_path / f"{name}.csv")


def test_nothing_is_read_beyond_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", {".csv": 1 << 20, ".gz": 1 << 20})
    (tmp_path / "runs.csv").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(EyelevelError, match=r"runs\.csv cannot be read: it is longer than 1 MiB"):
        read_text(tmp_path / "runs.csv")
    (tmp_path / "har.gz").write_bytes(gzip.compress(bytes(4 << 20)))
    with pytest.raises(EyelevelError, match=r"har\.gz is broken: it is longer than 1 MiB when it is unpacked"):
        read_text(tmp_path / "har.gz")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "holds no JSON object"),
        (b'{"a": ', "Expecting value"),
        (b"\xff", "decode"),
    ],
)
def test_what_is_no_object_is_broken(content: bytes, fault: str, tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_bytes(content)
    with pytest.raises(EyelevelError, match=rf"campaign\.json is broken: .*{fault}"):
        read_object(tmp_path / "campaign.json")


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"no gzip" + data])
def test_what_was_cut_short_or_is_not_packed_is_broken(damage: object, tmp_path: Path) -> None:
    assert callable(damage)
    (tmp_path / "a.json.gz").write_bytes(damage(gzip.compress(b"{}")))
    with pytest.raises(EyelevelError, match=r"a\.json\.gz is broken"):
        read_object(tmp_path / "a.json.gz")
