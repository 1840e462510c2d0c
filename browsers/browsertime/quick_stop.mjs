// Loaded into Browsertime's Node before Browsertime itself: Browsertime ends as soon as the browser has, without
// waiting two seconds, which it does to "give the browsers some time to stop". Nothing follows here that would need
// this wait, and the replay ends all processes that are left.
import { part, replace } from "./browsertime.mjs";

const { Iteration } = await part("core/engine/iteration");

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
