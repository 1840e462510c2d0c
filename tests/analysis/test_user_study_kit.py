"""The clips of a kit, and requests that are refused before any clip is made."""

from pathlib import Path

import pandas as pd
import pytest

from analysis.runs import CampaignTable, load
from analysis.statistics.hypotheses import Pair
from analysis.user_study import settings
from analysis.user_study.clips import make_key
from analysis.user_study.kit import public_document
from base.errors import EyelevelError
from eyelevel.simulate import Truth, write

TRUTH = Truth(sites=3, networks=("dsl", "lte"), protocols=("tcp", "tcp+", "quic"), runs=2)
PAIRS = [Pair("tcp+", "quic")]
# The first bytes of an MP4 film (ISO/IEC 14496-12, section 4.3), after which nothing follows.
NO_FILM_BUT_A_NAME = b"\0\0\0\x18ftyp"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> CampaignTable:
    """A campaign with one incomplete setting: QUIC on the third site on LTE. The setting's first run does not count,
    and its second run has no film."""
    folder = write(tmp_path_factory.mktemp("kit") / "c", TRUTH)
    runs = pd.read_csv(folder / "runs.csv", keep_default_na=False)
    lost = (runs["site"] == "site-03") & (runs["network"] == "lte") & (runs["protocol"] == "quic")
    runs.loc[lost & (runs["run"] == 1), "valid"] = False
    runs["valid"] = runs["valid"].astype(str).str.lower()
    runs.to_csv(folder / "runs.csv", index=False)
    for row in runs[~(lost & (runs["run"] == 2))].to_dict("records"):
        (folder / row["folder"]).mkdir(parents=True)
        (folder / row["folder"] / "film.mp4").write_bytes(NO_FILM_BUT_A_NAME)
    return load(folder)


def study(folder: Path, text: str) -> settings.StudySettings:
    """The settings after the changes in `text`."""
    (folder / "study.toml").write_text(text)
    return settings.load(folder / "study.toml")


def test_each_cell_whose_pair_has_films_is_in_it(campaign: CampaignTable) -> None:
    key = make_key(campaign, PAIRS, settings.load())
    pairs = [clip for clip in key.clips if (clip.part, clip.kind) == ("pairs", "measured")]
    assert [(clip.network, clip.site) for clip in pairs] == [
        *(("dsl", f"site-0{number}") for number in (1, 2, 3)),
        *(("lte", f"site-0{number}") for number in (1, 2)),
    ]
    assert all([side.protocol for side in clip.sides] == ["tcp+", "quic"] for clip in pairs)
    ratings = [clip for clip in key.clips if (clip.part, clip.kind) == ("ratings", "measured")]
    assert len(ratings) == 2 * len(pairs)
    kinds = [clip.kind for clip in key.clips if clip.part == "pairs" and clip.kind != "measured"]
    assert kinds == ["delayed", "delayed", "identical", "practice"]
    assert len(key.by_name()) == len(key.clips)


def test_the_page_learns_what_to_draw_from_and_no_more(campaign: CampaignTable, tmp_path: Path) -> None:
    wanted = study(tmp_path, '[contexts]\nlte = "On a train."')
    key = make_key(campaign, PAIRS, wanted)
    ratings, pairs = public_document(key, wanted)["parts"]
    assert (ratings["count"], pairs["count"]) == (10, 5)
    assert [len(pairs[name]) for name in ("clips", "always", "practice")] == [5, 3, 1]
    on_lte = {clip.name for clip in key.clips if clip.network == "lte" and clip.part == "ratings"}
    assert ratings["contexts"] == dict.fromkeys(on_lte, "On a train.") and pairs["contexts"] == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pair_per_participant = 3", "has an unknown key 'pair_per_participant'"),
        ('parts = ["pairs", "pair"]', "parts must be some of pairs, ratings"),
        ("width = 641", "width must be even"),
        ("control_delay_s = 0", "control_delay_s must be more than 0"),
        ('[words]\nscale = ["bad", "good"]', "words.scale must have 7 words"),
        ('networks = ["umts"]', "the campaign has no networks umts; it has dsl, lte"),
        ('[contexts]\numts = "On a train."', "the campaign has no networks umts"),
        ('sites = ["site-09"]', "the campaign has no sites site-09"),
        ('pairs = [["tcp", "sctp"]]', "the campaign has no protocols sctp"),
        ('sites = ["site-03"]\nnetworks = ["lte"]', "a user study needs a campaign with FILMS=all"),
        ("title =", "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    campaign: CampaignTable, tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(EyelevelError, match=message) as error:
        make_key(campaign, PAIRS, study(tmp_path, text))
    assert "\n" not in str(error.value)
