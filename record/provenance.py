"""When a site was recorded, and which versions of HTTP its servers spoke, in sentences for people."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from base.text import printable
from base.words import plural
from record.assemble import RECORDED
from record.connections import HTTP1
from record.site import Site

# Keys of `Site.recorder`: one that only recorded sites have; and the version of HTTP that the recorder of a format
# speaks.
SOURCE, SPOKEN = "source", "http"
NAMES = {HTTP1: "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}
DAYS_OF_YEAR = 365


def provenance(site: Site, now: datetime | None = None) -> list[str]:
    """The sentences on `site`; none for a generated site. `now`: by default, the present. Raises EyelevelError."""
    if SOURCE not in site.recorder:
        return []
    date = recorded_at(site)
    if date is None:
        texts = ["The recording does not say when it was made: today's site may differ."]
    else:
        years = ((now or datetime.now(UTC)) - date).days // DAYS_OF_YEAR
        ago = f", {plural('year', years)} ago: today's site may differ" if years > 0 else ""
        texts = [f"The page was recorded on {date.day} {date:%B %Y}{ago}."]
    if recorders := printable(site.recorder.get(SPOKEN, "")):
        return [
            *texts,
            f"Its recorder spoke {recorders} with the servers; which other versions they spoke is not known.",
        ]
    alpns = dict.fromkeys(one.alpn for one in site.connections if one.alpn)
    if not alpns:
        return [*texts, "The recording does not say which versions of HTTP its servers spoke."]
    spoken = " and ".join(NAMES.get(alpn, alpn) for alpn in alpns)
    built = ", for which a page is often spread over more hosts" if [*alpns] == [HTTP1] else ""
    return [*texts, f"Its servers spoke {spoken}{built}; a replay measures the version of its protocol."]


def recorded_at(site: Site) -> datetime | None:
    """When `site` was recorded: as its recorder noted it, or else as its start page's server dated its response. None
    if unknown. Raises EyelevelError."""
    try:
        if noted := site.recorder.get(RECORDED):
            date = datetime.fromisoformat(noted)
        else:
            start = next((one for one in site.exchanges if one.url == site.url), site.exchanges[0])
            date = parsedate_to_datetime(site.recorded(start).response.header("date") or "")
        return date.replace(tzinfo=date.tzinfo or UTC)
    except (ValueError, TypeError, OverflowError):
        return None
