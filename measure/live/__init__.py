"""Live loads: a recorded page is loaded from the web itself, to compare replays with.

`visit` is one load, in namespaces of its own but in the machine's network; `loads` repeats it until enough loads count.
"""

import math

from base.bounded import parse_json, read_regular
from base.errors import EyelevelError
from base.structure import structured
from base.text import printable
from record.layout import LIVE
from record.live import FORMAT, HTTP_VERSIONS, LiveLoads
from record.site import Site

# A site, including this file, may come from anybody, so the file's size is limited. One load takes 200 bytes.
FILE_BYTES = 1 << 20


def read_live(site: Site) -> LiveLoads | None:
    """The live loads that are stored with `site`; None without any. Raises EyelevelError."""
    path = site.folder / LIVE
    try:
        values = parse_json(read_regular(path, FILE_BYTES))
        if not isinstance(values, dict):
            raise EyelevelError("it is not a JSON object")
        if (form := values.pop("format", None)) != FORMAT:
            raise EyelevelError(f"its format is {form!r}, this version reads {FORMAT}")
        live = structured(values, LiveLoads, "it")
        times = [time for load in live.loads for time in (*load.metrics.values(), *load.canary_ms.values())]
        if not live.loads or not all(0 < time < math.inf for time in times):
            raise EyelevelError("it has no load, or an invalid time")
        if any(name not in HTTP_VERSIONS or count < 0 for load in live.loads for name, count in load.protocols.items()):
            raise EyelevelError("it has requests over an unknown version of HTTP")
        # All these texts are shown to users.
        texts = (live.browser, live.loaded_at, live.network or "", *live.network_settings, *live.round_trips_ms)
        if any(printable(text) != text for text in texts):
            raise EyelevelError("it has text that cannot be shown")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EyelevelError) as error:
        raise EyelevelError(f"{path} is broken ({error}); remove it, or record the site again with LIVE=5") from None
    return live
