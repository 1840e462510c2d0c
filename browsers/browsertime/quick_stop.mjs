// Loaded into Browsertime's Node before Browsertime itself: it then ends with the browser, without the two
// seconds that it "gives the browsers some time to stop". Nothing follows here that would need them, and
// the replay ends whatever is left.
import { part, replace } from "./browsertime.mjs";

const { Iteration } = await part("core/engine/iteration.js");

replace(
  Iteration,
  "_stopBrowser",
  () =>
    async function (browser, engine, options, result, index) {
      await engine.beforeBrowserStop(browser, index, result);
      await browser.stop();
      await engine.afterBrowserStopped();
    },
);
