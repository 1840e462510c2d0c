"""Checks an RO-Crate with other projects' programs: `python -m support.check_crate CRATE`.

Run it with a Python that has these programs (the set-up's environment `format_checkers`). It prints JSON: the `issues`
that the validator of the profile of RO-Crate 1.1 finds (severity, text), and the data that the library `rocrate` reads
from the crate: its `name`, its `licence` and its `files` with their SHA-256.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import requests
from rocrate.rocrate import ROCrate
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
GATEWAY_TIMEOUT = 504  # the validator takes this to mean that it is offline


def answer(_: HttpRequester, url: str, *arguments: object, **options: object) -> requests.Response:
    """Stands in for the web: returns the context of RO-Crate, which `rocrate` includes, and nothing else."""
    response = requests.Response()
    response.url, response.status_code = url, GATEWAY_TIMEOUT
    if url == CONTEXT:
        response.status_code = requests.codes.ok
        response.headers["Content-Type"] = "application/ld+json"
        response._content = (files("rocrate") / "data" / "ro-crate.jsonld").read_bytes()
        assert response.json()["@id"] == CONTEXT
    return response


def main(folder: str) -> None:
    """Check the crate in `folder`."""
    HttpRequester.get = HttpRequester.head = answer
    with TemporaryDirectory() as cache:
        settings = ValidationSettings(
            rocrate_uri=folder,
            profile_identifier="ro-crate-1.1",
            requirement_severity=Severity.RECOMMENDED,
            offline=True,
            cache_path=Path(cache) / "cache",
        )
        issues = services.validate(settings).get_issues(Severity.RECOMMENDED)
    crate = ROCrate(folder)
    contents = {
        "issues": sorted({(issue.severity.name, issue.message) for issue in issues}),
        "name": crate.name,
        "licence": crate.license if isinstance(crate.license, str) else crate.license.id,
        "files": {entity.id: entity["sha256"] for entity in crate.data_entities},
    }
    print(json.dumps(contents))


if __name__ == "__main__":
    main(sys.argv[1])
