"""Pages that play a video: a page with a player on one host; manifest and segments, each a file, on another.

A page's name says what it plays, with which player, and for how long: `video-hd720-60s`, `video-bola-60s`,
`video-throughput-hls-60s`. It plays one quality, the only one in its manifest, or lets a rule of the player choose
among all. The same name gives the same bytes on the same machine. Another version of FFmpeg may encode the pictures
differently, but segments have the same sizes everywhere.
"""

import gzip
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from base.files import read_json
from base.places import cache_dir
from record.generated import GeneratedSite, generated_exchange
from record.site import Exchange, Recording
from studies.video import manifests, media
from studies.video.defaults import LADDER_BPS, PLAYERS, RULES, TRUE
from studies.video.media import SEGMENT_S, SOUND_BPS

HOST, SEGMENTS_HOST = "video.example", "segments.video.example"
ADDRESS, SEGMENTS_ADDRESS = "192.0.2.1", "192.0.2.2"
# Allows the other host to read the responses, and to see when they came.
OPEN_TO_ALL = (("Access-Control-Allow-Origin", "*"), ("Timing-Allow-Origin", "*"))

NAME = re.compile(r"video-(?P<plays>[a-z0-9-]+?)(?P<hls>-hls)?-(?P<seconds>[1-9]\d*)s")
# A video is this much longer than its play, since players that have the whole video request nothing more. By default,
# dash.js never buffers further ahead than this; hls.js buffers up to 60 MB ahead if they last for more than 30 s.
AHEAD_S = 30
SEGMENT = re.compile(rf"https://{re.escape(SEGMENTS_HOST)}/(?P<quality>[^/]+)/(?P<number>\d+)\.m4s")
SOUND = "sound"

PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Video:
    """A page with a video. `plays`: the quality that it plays, or the rule by which its player chooses one; `player`:
    one of `PLAYERS`; `seconds`: for how long the play is observed."""

    plays: str
    seconds: int
    player: str = "dash"

    @property
    def name(self) -> str:
        """The name of the site."""
        return f"video-{self.plays}{'-hls' if self.player == 'hls' else ''}-{self.seconds}s"

    @property
    def is_adaptive(self) -> bool:
        return self.plays in RULES

    @property
    def segments(self) -> int:
        """The number of segments of the whole video."""
        return -(-(self.seconds + AHEAD_S) // SEGMENT_S)

    @property
    def qualities(self) -> dict[str, int]:
        """Quality → bit/s, for the qualities that the player can choose."""
        if self.is_adaptive:
            return LADDER_BPS
        return {self.plays: LADDER_BPS["hd720" if self.plays == TRUE else self.plays]}


def page_named(name: str) -> Video | None:
    """The page with the site name `name`; None if `name` is not that of such a page."""
    match = NAME.fullmatch(name)
    if not match or match["plays"] not in (*LADDER_BPS, TRUE, *RULES):
        return None
    video = Video(match["plays"], int(match["seconds"]), "hls" if match["hls"] else "dash")
    return None if video.is_adaptive and video.player not in RULES[video.plays] else video


def site(name: str) -> GeneratedSite | None:
    """The site with this name; None if the name is not that of such a page. Raises EyelevelError if its player is
    missing."""
    video = page_named(name)
    return GeneratedSite(recorder(video), lambda: _announced(video), is_for_study=True) if video else None


def _announced(video: Video) -> Recording:
    size_mb = sum(video.qualities.values()) * video.segments * SEGMENT_S // 8_000_000
    print(f"making {video.name}: a video of about {size_mb} MB", file=sys.stderr)
    return generate(video)


def recorder(video: Video) -> dict[str, str]:
    """The programs that make a page, with their versions; a page made by other versions is made again. Raises
    EyelevelError if its player is not installed."""
    package = _package(video.player)
    return {"name": "eyelevel video", "version": "2", package.name: str(read_json(package / "package.json")["version"])}


def generate(video: Video) -> Recording:
    """The recording of the page. Raises EyelevelError if the player or FFmpeg is missing, or if FFmpeg fails."""
    script = (_package(video.player) / PLAYERS[video.player][1]).read_bytes()
    settings = {"rule": video.plays if video.is_adaptive else None, "seconds": video.seconds, "segment_s": SEGMENT_S}
    import jinja2

    page = jinja2.Template(PAGE.read_text()).render(player=video.player, manifest=_url(_manifest(video)), **settings)
    # Compressed, as websites send scripts.
    packed = (("Content-Encoding", "gzip"),)
    exchanges = [
        generated_exchange(f"https://{HOST}/", "text/html", page.encode(), ADDRESS),
        generated_exchange(
            f"https://{HOST}/player.js", "text/javascript", gzip.compress(script, mtime=0), ADDRESS, packed
        ),
    ]
    pictures = media.pictures(video.segments, is_true=video.plays == TRUE)
    sound = media.sound(video.segments)
    tracks = [(quality, pictures, bps, "video") for quality, bps in video.qualities.items()]
    for quality, track, bps, kind in [*tracks, (SOUND, sound, SOUND_BPS, "audio")]:
        exchanges.append(_exchange(f"{quality}/begin.mp4", f"{kind}/mp4", track.beginning))
        for number, segment in enumerate(track.segments, start=1):
            body = media.padded(segment, bps, f"{quality}/{number}")
            exchanges.append(_exchange(f"{quality}/{number}.m4s", f"{kind}/mp4", body))
    for path, content_type, text in manifests.of(video.player, video.qualities, pictures, sound, SOUND):
        exchanges.append(_exchange(path, content_type, text.encode()))
    return Recording(f"https://{HOST}/", tuple(exchanges), recorder(video))


def _manifest(video: Video) -> str:
    return manifests.DASH if video.player == "dash" else manifests.HLS


def _package(player: str) -> Path:
    folder = cache_dir() / "node" / "node_modules" / PLAYERS[player][0]
    if not (folder / PLAYERS[player][1]).exists():
        raise EyelevelError(f"the player {PLAYERS[player][0]} is not installed; run 'make setup'")
    return folder


def _url(path: str) -> str:
    return f"https://{SEGMENTS_HOST}/{path}"


def _exchange(path: str, content_type: str, body: bytes) -> Exchange:
    return generated_exchange(_url(path), content_type, body, SEGMENTS_ADDRESS, OPEN_TO_ALL)
