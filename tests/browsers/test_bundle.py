"""The bundle of Browsertime does the same as its files."""

import json
import subprocess
from pathlib import Path

from base.places import tool
from browsers.browsertime.run import SCRIPTS

# Asks a driver whether an element of a page is displayed; prints the script for the page, and the name of the error
# that it gets. The driver gives each script the error "timeout".
ASK = """
import { createServer } from "node:http";
const { part } = await import(BROWSERTIME);
const { createWebDriver } = await part("core/webdriver/index");
const answers = {
  "/session": { sessionId: "s", capabilities: {} },
  "/session/s/element": { "element-6066-11e4-a52e-4f735466cecf": "e" },
  "/session/s/execute/sync": { error: "timeout" },
};
let script;
const server = createServer(async (request, response) => {
  ({ script } = JSON.parse((await request.toArray()).join("")));
  const value = answers[request.url];
  response.writeHead(value.error ? 500 : 200).end(JSON.stringify({ value }));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
const driver = await createWebDriver("", { browser: "chrome", chrome: {}, selenium: { url, capabilities: {} } });
const element = await driver.findElement({ id: "any" });
const { name } = await element.isDisplayed().catch((error) => error);
console.log(JSON.stringify({ script, name }));
process.exit();
"""


def test_scripts_of_pages_and_names_of_errors_are_those_of_the_files(tmp_path: Path) -> None:
    """Bundling renames classes, and adds calls of functions that no page has."""
    program = tool("browsertime-bundle").resolve()
    ask = tmp_path / "ask.mjs"
    ask.write_text(ASK.replace("BROWSERTIME", json.dumps((SCRIPTS / "browsertime.mjs").as_uri())))
    command: list[str | Path] = [tool("node"), "--import", ask, program]
    answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert answer["name"] == "TimeoutError"
    atom = program.parents[2] / "selenium-webdriver" / "lib" / "atoms" / "is-displayed.js"
    assert atom.read_text().partition("module.exports = ")[2].strip().removesuffix(";") in answer["script"]
