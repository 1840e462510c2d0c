// Loaded into Browsertime's Node before Browsertime itself: it then ends with the browser, without the two
// seconds that it "gives the browsers some time to stop". Nothing follows here that would need them, and
// the replay ends whatever is left.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

const program = pathToFileURL(realpathSync(process.argv[1]));
const { Iteration } = await import(new URL("../lib/core/engine/iteration.js", program));

if (!Iteration.prototype._stopBrowser) {
  throw new Error("this is not the Browsertime that package-lock.json pins");
}

Iteration.prototype._stopBrowser = async function (browser, engine, options, result, index) {
  await engine.beforeBrowserStop(browser, index, result);
  await browser.stop();
  await engine.afterBrowserStopped();
};
