"""Files of a campaign are untrusted: sizes are limited, only regular files are read, and no links are followed."""

import gzip
import os
from pathlib import Path

import pytest

from base.errors import EyelevelError
from dataset.reading import MOST_BYTES, read_bytes, read_object, read_text


def test_gzip_files_are_decompressed(tmp_path: Path) -> None:
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


def test_files_beyond_the_size_limit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").touch()
    os.truncate(tmp_path / "runs.csv", MOST_BYTES[".csv"] + 1)  # a sparse file, which takes no disk space
    with pytest.raises(EyelevelError, match=r"runs\.csv cannot be read: it is longer than 160 MiB"):
        read_text(tmp_path / "runs.csv")
    (tmp_path / "har.gz").write_bytes(gzip.compress(bytes(MOST_BYTES[".gz"] + 1), compresslevel=1))
    with pytest.raises(EyelevelError, match=r"har\.gz is broken: it is longer than 64 MiB when decompressed"):
        read_text(tmp_path / "har.gz")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "is not a JSON object"),
        (b'{"a": ', "Expecting value"),
        (b"\xff", "decode"),
    ],
)
def test_json_other_than_an_object_is_refused(content: bytes, fault: str, tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_bytes(content)
    with pytest.raises(EyelevelError, match=rf"campaign\.json is broken: .*{fault}"):
        read_object(tmp_path / "campaign.json")


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"no gzip" + data, lambda data: data + data])
def test_truncated_or_invalid_gzip_is_refused(damage: object, tmp_path: Path) -> None:
    assert callable(damage)
    (tmp_path / "a.json.gz").write_bytes(damage(gzip.compress(b"{}")))
    with pytest.raises(EyelevelError, match=r"a\.json\.gz is broken"):
        read_object(tmp_path / "a.json.gz")
