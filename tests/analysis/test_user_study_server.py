"""The server of a user study serves only the kit, and accepts only votes."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.serving import served

from analysis.user_study.clips import Clip, Key, Side
from analysis.user_study.server import (
    MOST_CONNECTIONS,
    MOST_CONNECTIONS_OF_ONE,
    MOST_VOTE_BYTES,
    PATIENCE_S,
    Collector,
    StudyServer,
)
from analysis.user_study.settings import load
from analysis.user_study.votes import MOST_BYTES, read_votes
from base.errors import EyelevelError
from base.files import write_json
from base.structure import unstructured
from eyelevel.defaults import USER_STUDY_ADDRESS as LOCAL

SIDE = Side("tcp", 1, "runs/film.mp4", 0, {"si": 1.0}, 1.0)
KEY = Key("5" * 12, "c", ("ratings",), load().rules, (Clip("clip", "ratings", "measured", "s", "lte", (SIDE,), 2.0),))
VOTE: dict[str, Any] = {
    **{"study": KEY.study, "participant": "a" * 32, "group": "", "part": "ratings", "trial": 1, "trials": 2},
    **{"clip": "clip", "swapped": False, "answer": "40", "plays": 1, "answer_ms": 4000, "away_ms": 0, "still_ms": 9},
    **{"session_ms": 5000, "layout": "single", "width": 390, "height": 800, "answered_at": "2026-11-23T22:00:00.000Z"},
}
JSON = {"content-type": "application/json"}


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit, and files next to it that must not be served."""
    kit = tmp_path / "user-study"
    (kit / "site" / "clips").mkdir(parents=True)
    (kit / "votes").mkdir()
    write_json(kit / "key.json", unstructured(KEY))
    (kit / "site" / "index.html").write_text("<p>pages")
    (kit / "site" / "clips" / "clip.mp4").write_bytes(b"film")
    (kit / "site" / "clips" / "link.mp4").symlink_to(kit / "key.json")
    return kit


@pytest.fixture
def port(kit: Path) -> Iterator[int]:
    with served(server := StudyServer((LOCAL, 0), Collector(kit))):
        yield server.server_address[1]


def ask(port: int, method: str, path: str, body: Any = None, headers: dict[str, str] = JSON) -> tuple[int, bytes]:
    """The status and the content of the server's answer."""
    connection = HTTPConnection(LOCAL, port, timeout=20)
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def test_it_serves_the_kit_and_nothing_else(port: int) -> None:
    assert ask(port, "GET", "/") == (200, b"<p>pages")
    assert ask(port, "GET", "/?part=pairs") == (200, b"<p>pages")
    assert ask(port, "GET", "/clips/clip.mp4") == (200, b"film")
    for path in (
        "/key.json",
        "/../key.json",
        "/votes/votes.csv",
        "/%2e%2e/key.json",
        "/clips/",
        "/clips/link.mp4",
        "//etc/passwd",
    ):
        assert ask(port, "GET", path)[0] == 404


def test_a_vote_is_kept_once(port: int, kit: Path) -> None:
    assert ask(port, "POST", "/votes", VOTE) == (204, b"")
    # The answer was lost, so the vote is sent again.
    assert ask(port, "POST", "/votes", VOTE | {"answer": "70"}) == (204, b"")
    assert ask(port, "POST", "/votes", VOTE | {"trial": 2})[0] == 204
    votes = read_votes(kit / "votes", KEY).table
    assert list(votes["answer"]) == ["40", "40"]
    # A restarted server does not count repeated votes either.
    collector = Collector(kit)
    collector.add(VOTE)
    assert len((kit / "votes" / "votes.csv").read_text().splitlines()) == 3


def test_votes_that_come_together_have_lines_of_their_own(port: int, kit: Path) -> None:
    people = [VOTE | {"participant": f"{person:032x}"} for person in range(24)]
    threads = [threading.Thread(target=ask, args=(port, "POST", "/votes", vote)) for vote in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = read_votes(kit / "votes", KEY)
    assert (read.table["participant"].nunique(), read.broken) == (24, 0)


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/votes", VOTE | {"clip": "../key"}, JSON, 400),
        ("/votes", VOTE | {"answer": "71"}, JSON, 400),
        ("/votes", [VOTE], JSON, 400),
        ("/votes", b"{", JSON, 400),
        ("/votes", b"[" * 4000, JSON, 400),
        ("/votes", b"\xff", JSON, 400),
        ("/votes", b" " * 4097, JSON, 413),
        ("/votes", VOTE, {"content-type": "text/plain"}, 415),
        ("/votes", VOTE, JSON | {"content-length": "-1"}, 411),
        ("/votes/../votes", VOTE, JSON, 404),
        ("/key.json", VOTE, JSON, 404),
    ],
)
def test_what_is_no_vote_leaves_nothing(
    port: int, kit: Path, path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    assert ask(port, "POST", path, body, headers)[0] == status
    assert list((kit / "votes").iterdir()) == []


def test_a_full_file_takes_no_more(port: int, kit: Path) -> None:
    assert ask(port, "POST", "/votes", VOTE)[0] == 204
    full_bytes = MOST_BYTES - MOST_VOTE_BYTES + 1
    os.truncate(kit / "votes" / "votes.csv", full_bytes)  # a sparse file, which takes no disk space
    assert ask(port, "POST", "/votes", VOTE | {"trial": 2})[0] == 507
    assert (kit / "votes" / "votes.csv").stat().st_size == full_bytes


def test_silent_clients_keep_nobody_out_for_good(kit: Path) -> None:
    with served(server := StudyServer((LOCAL, 0), Collector(kit), patience_s=5)):
        silent = [socket.create_connection((LOCAL, server.server_address[1])) for _ in range(MOST_CONNECTIONS)]
        # The server closes silent connections after this time.
        assert {client.recv(1) for client in silent} == {b""}
        for client in silent:
            client.close()
        assert ask(server.server_address[1], "GET", "/")[0] == 200


def test_a_folder_that_is_no_kit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is not a user study: key\.json is missing"):
        Collector(tmp_path)


def test_a_client_that_sends_a_letter_now_and_then_is_hung_up(kit: Path) -> None:
    """All letters are in one line: after 100 lines the server would hang up anyway."""
    with served(server := StudyServer((LOCAL, 0), Collector(kit), request_s=5)):
        with socket.create_connection((LOCAL, server.server_address[1]), timeout=20) as client:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
            client.settimeout(0.05)
            is_open = True
            while is_open:  # the test's own time limit ends this
                with suppress(TimeoutError):
                    is_open = client.recv(1) != b""
                with suppress(ConnectionError):
                    client.sendall(b"y")
        assert ask(server.server_address[1], "GET", "/")[0] == 200


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 403), ("", 403), ("127.0.0.1.example:80", 403), ("LOCALHOST:8021", 200)]
)
def test_on_this_machine_alone_it_answers_under_no_other_name(port: int, kit: Path, host: str, status: int) -> None:
    assert ask(port, "GET", "/", headers={"host": host})[0] == status
    assert ask(port, "POST", "/votes", VOTE, JSON | {"host": host})[0] == (204 if status == 200 else 403)
    assert (kit / "votes" / "votes.csv").exists() == (status == 200)


def test_one_address_sends_so_many_votes_in_a_minute(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.user_study.server.MOST_VOTES_A_MINUTE", 2)
    minutes = iter([1, 1, 1, 2])
    with served(server := StudyServer((LOCAL, 0), Collector(kit), minute=lambda: next(minutes))):
        port = server.server_address[1]
        votes = [VOTE | {"participant": f"{person:032x}"} for person in range(4)]
        assert [ask(port, "POST", "/votes", vote)[0] for vote in votes] == [204, 204, 429, 204]
    assert len(read_votes(kit / "votes", KEY).table) == 3


def test_many_votes_are_told_once(
    kit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("analysis.user_study.server.WARNING_BYTES", 100)
    collector = Collector(kit)
    for person in range(3):
        collector.add(VOTE | {"participant": f"{person:032x}"})
    assert capsys.readouterr().err.count("do its votes come from people?") == 1


def test_one_address_leaves_room_for_others(kit: Path) -> None:
    """The server does not listen on loopback, where all clients would share one address, and the limit for one address
    would not apply."""
    server = StudyServer(("0.0.0.0", 0), Collector(kit))
    with served(server):
        port = server.server_address[1]
        # Accepted connections stay open until the server's patience ends, which is later.
        full = [socket.create_connection((LOCAL, port), timeout=PATIENCE_S / 2) for _ in range(MOST_CONNECTIONS)]
        assert sum(client.recv(1, socket.MSG_PEEK) == b"" for client in full[MOST_CONNECTIONS_OF_ONE:]) == (
            MOST_CONNECTIONS - MOST_CONNECTIONS_OF_ONE
        )
        with socket.create_connection((LOCAL, port), source_address=("127.0.0.2", 0), timeout=20) as other:
            other.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert other.recv(12).endswith(b"200")
        for client in full:
            client.close()
