"""URLs of a HAR, as Node writes them for Browsertime, and the same URLs as browsers send them."""

import json
import string
import subprocess
from pathlib import Path

from base.places import tool
from dataset.har import comparable_url
from record.urls import normal_url

# This is how chrome-har writes the URL of a request, which the developer tools name with its fragment.
AS_IN_HARS = """
const { parse, format } = require("node:url")
const urls = JSON.parse(process.argv[1])
console.log(JSON.stringify(urls.map((url) => format(parse(url, true)))))
"""


def test_a_url_is_comparable_whichever_log_it_comes_from() -> None:
    letters = [*string.printable, "%7B", "%7b", "ä"]
    sent = [normal_url(f"https://a.example/x{letter}?y={letter}") for letter in letters if letter != "%"]
    command: list[str | Path] = [tool("node"), "--no-deprecation", "-e", AS_IN_HARS]
    command.append(json.dumps([f"{url}#z" for url in sent]))
    in_har = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [comparable_url(url) for url in in_har] == [comparable_url(url) for url in sent]
    assert "https://a.example/x%7C?y=|" in sent and "https://a.example/x%7C?y=%7C#z" in in_har
    # Different requests stay different.
    assert comparable_url("https://a.example/?%7b") != comparable_url("https://a.example/?%7B")
