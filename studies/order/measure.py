"""The campaign of the orders of service: pages over each protocol in the same blocks, with the arrival of all data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import write_json
from browsers.contract import StreamRequest
from browsers.registry import browser_named
from dataset.navigation import Navigation, read_navigation
from measure.campaign.method import Method
from measure.run.evidence import Evidence
from measure.run.setting import Loading, Setting
from studies.campaign import study_campaign
from studies.order.orders import PROTOCOLS
from studies.study import Measurement, Request

STUDY = "order"
# The only browser whose network log has the data of streams.
BROWSER = "chromium"
# The file in a run's folder with the arrival of its data.
STREAMS = "streams.json"


@dataclass(frozen=True)
class OrderMethod(Method):
    """Loads pages like a campaign, and keeps which response's data arrived when."""

    def evidence(self, setting: Setting, folder: Path) -> Evidence:
        """See `Method`."""
        evidence = super().evidence(setting, folder)
        if evidence.requests and (navigation := read_navigation(folder)):
            streams = browser_named(setting.loading.browser).read_streams(folder)
            largest = asdict(evidence.largest) if evidence.largest else None
            responses = [_response(stream, navigation) for stream in streams if stream.sent_s is not None]
            write_json(folder / STREAMS, {"largest": largest, "responses": responses})
        return evidence


def _response(stream: StreamRequest, navigation: Navigation) -> Mapping[str, Any]:
    """The data of a response as JSON; times in ms from the navigation."""

    def since_ms(at_s: float) -> float:
        return round(1000 * at_s - navigation.began_ms, 1)

    return {
        "url": stream.url,
        "connection": stream.connection,
        "urgency": stream.urgency,
        "incremental": stream.incremental,
        "requested_ms": since_ms(stream.sent_s or 0),
        "arrivals": [(since_ms(at_s), size) for at_s, size in stream.arrivals],
    }


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    if browser_named(request.browser_name).kind != BROWSER:
        raise EyelevelError(f"the study of orders needs {BROWSER}, whose network log has the data of each response")
    names = request.names("proto", "protocols", PROTOCOLS)
    over = names if isinstance(names, str) else ",".join(names)
    planned = study_campaign(replace(request, proto=over), STUDY, OrderMethod())
    planned = replace(
        planned,
        loading=Loading(browser=request.browser_name),
        films=request.films,
    )
    return Measurement(planned, summary=lambda: [f"measured: {planned.folder}"])
