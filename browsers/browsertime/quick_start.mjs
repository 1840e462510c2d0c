// Loaded into Browsertime's Node before Browsertime itself, where a page counts as finished soon after its load event:
// Browsertime then asks at once whether it has, without the two seconds that it waits before it first does. The driver
// answers no script before the load event, so that no script runs in the page while it loads.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

const program = pathToFileURL(realpathSync(process.argv[1]));
const { SeleniumRunner } = await import(new URL("../lib/core/seleniumRunner.js", program));

if (!SeleniumRunner.prototype.loadAndWait || !SeleniumRunner.prototype._waitOnPageCompleteCheck) {
  throw new Error("this is not the Browsertime that package-lock.json pins");
}

SeleniumRunner.prototype.loadAndWait = async function (url, pageCompleteCheck) {
  // As Browsertime navigates: from the page itself, so that no time of the driver's is in the navigation's.
  await this.driver.executeScript(`requestAnimationFrame(() => requestAnimationFrame(() => {
    window.location = ${JSON.stringify(url)};
  }));`);
  await this._waitOnPageCompleteCheck(pageCompleteCheck, url);
};
