// Loaded into Browsertime's Node before Browsertime itself. It navigates to the page as Browsertime does, from the page
// before and when the orange has gone, and notes when. Browsertime is then made to ask whether the page has finished
// after `ask_after_ms`, in place of its two seconds. The driver answers no script before the load event, so that no
// script runs in the page while it loads.
//
// When the film has ended, `navigation.json` of the results has two times in ms since 1970: when this navigation began
// (`began_ms`), and when the one began of the page that is there then (`page_ms`), by the browser's own clock. A page that
// goes on to another one by itself has two that differ.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { MeasureVideo } = await part("core/engine/command/measure/video.js");
const { SeleniumRunner } = await part("core/seleniumRunner.js");

// A return visit has two navigations, of which the last is measured.
let beganMs = null;

replace(
  SeleniumRunner,
  "loadAndWait",
  () =>
    async function (url, pageCompleteCheck) {
      beganMs = await this.driver.executeAsyncScript(`
        const [noted] = arguments;
        document.getElementById("browsertime-orange")?.remove();
        requestAnimationFrame(() => requestAnimationFrame(() => {
          noted(performance.timeOrigin + performance.now());
          window.location = ${JSON.stringify(url)};
        }));`);
      await delay(this.options.navigation.ask_after_ms);
      await this._waitOnPageCompleteCheck(pageCompleteCheck, url);
    },
);

replace(
  MeasureVideo,
  "stop",
  (original) =>
    async function (...parameters) {
      await original.apply(this, parameters);
      try {
        const pageMs = await this.browser.getDriver().executeScript("return performance.timeOrigin;");
        const document = JSON.stringify({ began_ms: beganMs, page_ms: pageMs });
        writeFileSync(join(this.options.resultDir, "navigation.json"), document);
      } catch (error) {
        console.log(`the page does not say when it was navigated to: ${error}`); // it has a dialog open, for example
      }
    },
);
