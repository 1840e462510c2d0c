"""Shows a campaign's films, for a person to accept or reject runs.

The pages are served to a browser on this machine. A decision is a verdict (`verdicts`) with its reason. The campaign
applies it at once, or, while it is being measured, after the present block.

Every user of this machine can connect to the port, and every page in a browser can send requests to it. So all
addresses begin with a secret that only the user who started the review knows.
"""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from statistics import median
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from base.errors import EyelevelError
from base.ownership import give_to_caller
from dataset.last_frames import read_last_frame
from dataset.metrics import in_words
from dataset.reading import read_bytes
from dataset.reasons import Reason
from dataset.run_files import FILM, SMALL_FILM, STRIP, is_film, is_of_runs
from dataset.table import Row, read_rows
from dataset.verdicts import PERSON, VERDICTS, Verdict, add_verdict, looked_at, read_verdicts
from films.frames import unlike_blocks
from films.playable import shrunk
from films.strip import STRIP_PICTURES
from measure.campaign.results import follow_decisions, followed
from tuning.defaults import DEFAULT_BROWSER

LOCAL = "127.0.0.1"
# The parts of a setting.
SETTING = ("site", "network", "protocol", "browser")
MAX_FORM_BYTES = 10_000
# The pages may have no scripts, be in no other page's frame, and send nothing to other hosts.
POLICY = "default-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)


@dataclass(frozen=True)
class ReviewedAttempt:
    """An attempt as the page shows it. `unlike`: the share of its last frame that differs from another attempt's,
    as the median over all other attempts."""

    row: Row
    unlike: float
    strip: bool
    film: bool
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Summary:
    """A setting's line on the page of all settings."""

    site: str
    network: str
    protocol: str
    browser: str
    valid: int
    rejected: int
    unlike: float

    @property
    def query(self) -> str:
        """The query of this setting's URL."""
        return urlencode({name: getattr(self, name) for name in SETTING})


class Review:
    """The HTML pages of one campaign, and the decisions that a person (`who`) makes on them."""

    def __init__(self, folder: Path, who: str = "") -> None:
        self.folder, self.who = folder, who
        self.base = f"/{secrets.token_urlsafe()}/"
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
        )
        environment.globals |= {"base": self.base, "in_words": in_words}
        self._page = environment.get_template("review.html.j2")
        read_rows(folder)

    def rows(self) -> list[Row]:
        """All attempts, after the verdicts so far."""
        return followed(read_rows(self.folder), read_verdicts(self.folder))

    def index(self) -> str:
        """The page of all settings."""
        settings: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
        looked = looked_at(self.folder)
        for row in self.rows():
            settings[row.site, row.network, row.protocol, row.browser].append(row)
        summaries = []
        for names, rows in settings.items():
            valid = [row for row in rows if row.valid]
            unlike = max(self._unlike(valid), default=0.0)
            summaries.append(Summary(*names, len(valid), len(rows) - len(valid), unlike))
        summaries.sort(key=lambda summary: (-summary.rejected, -summary.unlike))
        return self._page.render(
            title=f"Review of {self.folder.name}",
            settings=summaries,
            browsers={row.browser for rows in settings.values() for row in rows},
            attempts=sum(map(len, settings.values())),
            rejected=sum(summary.rejected for summary in summaries),
            counting=sum(summary.valid for summary in summaries),
            looked_at=sum(row.valid and row.folder in looked for rows in settings.values() for row in rows),
        )

    def setting(self, site: str, network: str, protocol: str, browser: str) -> str:
        """The page of one setting: all its attempts, with rejected and unusual ones first."""
        names = (site, network, protocol, browser)
        rows = [row for row in self.rows() if (row.site, row.network, row.protocol, row.browser) == names]
        verdicts = read_verdicts(self.folder)
        runs = [
            ReviewedAttempt(
                row,
                unlike,
                strip=(self.folder / row.folder / STRIP).exists(),
                film=any((self.folder / row.folder / name).exists() for name in (FILM, SMALL_FILM)),
                verdicts=tuple(verdict for verdict in verdicts if verdict.folder == row.folder),
            )
            for row, unlike in zip(rows, self._unlike(rows), strict=True)
        ]
        runs.sort(key=lambda run: (run.row.valid, -run.unlike, run.row.run))
        title = f"{site} on {network} over {protocol} in {browser}"
        fields = dict(zip(SETTING, names, strict=True))
        return self._page.render(title=title, runs=runs, pictures=STRIP_PICTURES, setting=fields)

    def confirm(self, site: str, network: str, protocol: str, browser: str) -> None:
        """Record that a person looked at all films of a setting's runs that count, and found them right. Raises
        EyelevelError."""
        names, looked = (site, network, protocol, browser), looked_at(self.folder)
        for row in self.rows():
            of_setting = (row.site, row.network, row.protocol, row.browser) == names
            if of_setting and row.valid and row.folder not in looked:
                add_verdict(self.folder, Verdict.of(row, row.reason, by=PERSON, valid=True, who=self.who))
        give_to_caller(self.folder / VERDICTS)

    def decide(self, folder: str, *, valid: bool, reason: str) -> Row:
        """Record that a person accepts or rejects the attempt in `folder`; returns its row. Raises EyelevelError."""
        rows = {row.folder: row for row in self.rows()}
        if not reason.strip():
            raise EyelevelError("a decision needs a reason")
        if folder not in rows:
            raise EyelevelError(f"{folder} is not an attempt of this campaign")
        row = rows[folder]
        if valid and any(other.valid and other.of == row.of for other in rows.values()):
            raise EyelevelError(f"another attempt at {row.of} counts; reject that one first")
        decision = Reason("accepted" if valid else PERSON, " ".join(reason.split()))
        add_verdict(self.folder, Verdict.of(row, decision, by=PERSON, valid=valid, who=self.who))
        follow_decisions(self.folder)
        give_to_caller(self.folder / VERDICTS)
        return row

    def strip(self, folder: str) -> bytes:
        """The film strip of the attempt in `folder`. Raises EyelevelError, OSError."""
        strip = self._attempt(folder) / STRIP
        if not is_of_runs(strip, self.folder):
            raise EyelevelError(f"there is no strip in {folder}, or it lies elsewhere")
        return read_bytes(strip)

    def film(self, folder: str, scratch: Path) -> Path:
        """A film that every browser plays; made in `scratch` if only the lossless film exists. Raises EyelevelError."""
        attempt = self._attempt(folder)
        if is_film(small := attempt / SMALL_FILM, self.folder):
            return small
        copy = scratch / f"{quote(folder, safe='')}.mp4"
        if not copy.exists() and not (is_film(attempt / FILM, self.folder) and shrunk(attempt / FILM, copy)):
            raise EyelevelError(f"the film in {folder} cannot be read")
        return copy

    def _attempt(self, folder: str) -> Path:
        """The path of `folder`, which must be that of an attempt of this campaign. Raises EyelevelError otherwise."""
        if folder not in {row.folder for row in self.rows()}:
            raise EyelevelError(f"{folder} is not an attempt of this campaign")
        return self.folder / folder

    def _unlike(self, rows: Sequence[Row]) -> list[float]:
        frames = [read_last_frame(self.folder / row.folder) for row in rows]
        return [
            1.0
            if frame is None
            else median(
                [unlike_blocks(frame, other) for other in frames if other is not None and other is not frame] or [0]
            )
            for frame in frames
        ]


def handler(review: Review, scratch: Path) -> type[BaseHTTPRequestHandler]:
    """The handler of requests for `review`'s pages, whose paths all begin with `review.base`."""

    class Handler(BaseHTTPRequestHandler):
        # How long (s) to wait for the rest of a request.
        timeout = 30

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            page, _, folder = unquote(url.path).removeprefix("/").partition("/")
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            try:
                if url.path == "/":
                    self._answer(review.index())
                elif url.path == "/setting":
                    setting = (
                        query["site"],
                        query["network"],
                        query["protocol"],
                        query.get("browser", DEFAULT_BROWSER),
                    )
                    self._answer(review.setting(*setting))
                elif page == "strip":
                    self._send(review.strip(folder), "image/jpeg")
                elif page == "film":
                    self._send(review.film(folder, scratch).read_bytes(), "video/mp4")
                else:
                    self.send_error(404)
            except (EyelevelError, KeyError, OSError, ValueError) as error:
                self.send_error(404, explain=str(error))

        def do_POST(self) -> None:
            if self.path not in ("/verdict", "/looked"):
                self.send_error(404)
                return
            try:
                form = self._form()
                if self.path == "/looked":
                    review.confirm(*(form[name] for name in SETTING))
                    self._go_to("")
                    return
                folder = form["folder"]
                row = review.decide(folder, valid=form["valid"] == "true", reason=form.get("reason", ""))
            except (KeyError, ValueError):
                self.send_error(400)
                return
            except EyelevelError as error:
                self.send_error(409, explain=str(error))
                return
            query = urlencode({name: getattr(row, name) for name in SETTING})
            self._go_to(f"setting?{query}#{quote(folder)}")

        def _go_to(self, page: str) -> None:
            self.send_response(303)
            self.send_header("location", f"{review.base}{page}")
            self.end_headers()

        def _form(self) -> dict[str, str]:
            """The fields of the form that was sent. Raises ValueError unless its length is given and at most
            MAX_FORM_BYTES."""
            length = self.headers.get("content-length", "")
            if not (length.isascii() and length.isdecimal() and int(length[:9]) <= MAX_FORM_BYTES):
                raise ValueError(length)
            return {name: values[0] for name, values in parse_qs(self.rfile.read(int(length)).decode()).items()}

        def _answer(self, page: str) -> None:
            self._send(page.encode(), "text/html; charset=utf-8")

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.connection.settimeout(None)  # a film may be paused for any time
            self.wfile.write(body)

        def end_headers(self) -> None:
            """Also forbid browsers everything that the pages do not need. Error responses get these headers, too."""
            for name, value in HEADERS:
                self.send_header(name, value)
            super().end_headers()

        def parse_request(self) -> bool:
            """Also refuses requests for another host name than ours (DNS rebinding), and requests whose path lacks the
            secret; removes the secret from the path."""
            if not super().parse_request():
                return False
            if self.headers.get("host", "").partition(":")[0] not in (LOCAL, "localhost"):
                self.send_error(403)
                return False
            base = self.path[: len(review.base)].encode(errors="replace")
            if not secrets.compare_digest(base, review.base.encode()):
                self.send_error(404)
                return False
            self.path = self.path[len(review.base) - 1 :]
            return True

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    return Handler
