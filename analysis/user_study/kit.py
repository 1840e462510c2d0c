"""Writes a kit: a folder with the pages that participants see, and next to them the key and a place for votes.

key.json    the content of each clip: not for participants
site/       files for any web server: pages, and clips whose names do not reveal their content
votes/      votes: those that `eyelevel user-study serve` received, and those that participants sent
"""

import math
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2

from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Pair
from analysis.user_study.clips import KEY, MEASURED, PRACTICE, Clip, Key, make_key
from analysis.user_study.settings import HIGHEST, LOWEST, PAIRS, RATINGS, StudySettings
from base.errors import EyelevelError
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from base.places import tool
from base.processes import last_line_of
from base.structure import unstructured
from dataset.run_files import is_film
from dataset.table import USER_STUDY
from films.kept import from_navigation

HERE = Path(__file__).parent
SITE, VOTES, CLIPS = "site", "votes", "clips"
# The colour around a film whose shape differs from the clip's: grey, so that it differs from the white of a page.
FRAME_COLOUR = "0x808080"


def write_kit(
    campaign: CampaignTable, pairs: Sequence[Pair], settings: StudySettings, watch: Callable[[int, int], None]
) -> Path:
    """Write the kit of `campaign` into its folder, and replace an older one; returns the kit's folder. `watch` is
    called after each clip with the number of finished clips and of all clips.

    Raises EyelevelError, also if there are votes on the older kit, since nobody could know which clips they are about.
    """
    into = campaign.folder / USER_STUDY
    if any((into / VOTES).glob("*.csv")):
        raise EyelevelError(f"{into / VOTES} has votes on the clips there; move {into} away to write another study")
    key = make_key(campaign, pairs, settings)
    with replacing_folder(into, KEY) as new:
        (new / VOTES).mkdir()
        site = new / SITE
        (site / CLIPS).mkdir(parents=True)
        for number, clip in enumerate(key.clips, start=1):
            write_clip(clip, campaign.folder, settings, site / CLIPS / f"{clip.name}.mp4")
            watch(number, len(key.clips))
        write_json(site / "study.json", public_document(key, settings))
        (site / "index.html").write_text(page(settings))
        for name in ("study.css", "study.js"):
            (site / name).write_bytes((HERE / name).read_bytes())
        write_json(new / KEY, unstructured(key))
    give_to_caller(into)
    return into


def write_clip(clip: Clip, campaign: Path, settings: StudySettings, into: Path) -> None:
    """Write the film of `clip` as `into`: all sides in one picture, each from its navigation on, so that they cannot
    drift apart. Raises EyelevelError."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y"]
    size = f"{settings.width}:{settings.height}"
    scale = f"scale={size}:force_original_aspect_ratio=decrease:flags=area"
    frame = f"{scale},pad={size}:-1:-1:color={FRAME_COLOUR},setsar=1"
    filters = []
    for place, side in enumerate(clip.sides):
        film = campaign / side.film
        if not is_film(film, campaign):
            raise EyelevelError(f"{film} is not a film of the campaign")
        command += ["-i", film]
        timed = from_navigation(film, settings.frames_per_s)
        # The first frame is shown during the delay, and the last until the other side is done.
        stand = f"tpad=start_duration={side.delay_s:g}:start_mode=clone:stop_mode=clone:stop=-1"
        filters.append(f"[{place}:v]{frame},{timed},{stand}[side{place}]")
    inputs = "".join(f"[side{place}]" for place in range(len(clip.sides)))
    filters.append(f"{inputs}hstack[clip]" if len(clip.sides) > 1 else f"{inputs}null[clip]")
    frames = math.ceil(clip.length_s * settings.frames_per_s)
    # H.264 with colours at half the resolution plays in every current browser.
    codec = ["-c:v", "libx264", "-preset", "fast", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    # Remove all information on where and when the film was made.
    clean = ["-an", "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
    command += ["-filter_complex", ";".join(filters), "-map", "[clip]", "-frames:v", str(frames), *codec, *clean, into]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        films = " and ".join(side.film for side in clip.sides)
        raise EyelevelError(f"no clip can be made of {films}: {last_line_of(done.stderr)}")


def public_document(key: Key, settings: StudySettings) -> dict[str, Any]:
    """The data for the page's script, which does not reveal the contents of clips.

    It has the clips to draw from, in groups to draw from evenly (the networks, as numbers), the clips to show always,
    and the clips for practice.
    """
    networks = list(dict.fromkeys(clip.network for clip in key.clips))
    per_participant = {
        PAIRS: settings.pairs_per_participant,
        RATINGS: settings.ratings_per_participant,
    }
    parts = []
    for part in key.parts:
        clips = [clip for clip in key.clips if clip.part == part]
        drawn = [[clip.name, networks.index(clip.network)] for clip in clips if clip.kind == MEASURED]
        contexts = {clip.name: settings.contexts[clip.network] for clip in clips if clip.network in settings.contexts}
        parts.append(
            {
                "name": part,
                "count": min(per_participant[part], len(drawn)),
                "clips": sorted(drawn),
                "always": sorted(clip.name for clip in clips if clip.kind not in (MEASURED, PRACTICE)),
                "practice": [clip.name for clip in clips if clip.kind == PRACTICE],
                "contexts": contexts if part == RATINGS else {},
            }
        )
    return {
        "study": key.study,
        "parts": parts,
        "width": settings.width,
        "height": settings.height,
        "words": unstructured(settings.words),
    }


def page(settings: StudySettings) -> str:
    """The page that participants see, as HTML; its script needs `study.json` and the clips next to it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["paragraphs"] = paragraphs
    template = environment.get_template("page.html.j2")
    return template.render(settings=settings, words=settings.words, lowest=LOWEST, highest=HIGHEST)


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, which blank lines separate."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
