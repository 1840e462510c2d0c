// Loaded into Browsertime's Node before Browsertime itself. Like Browsertime, it navigates to the page by a script in
// the previous page, once the orange has disappeared; it also notes the time. Browsertime then asks whether the page
// has finished after `ask_after_ms`, instead of after two seconds. The driver runs no script in the page before the
// load event.
//
// When the film has ended, three times are written to `navigation.json` in the results, in ms since 1970: just before
// and just after this navigation began (`began_ms`, `begun_ms`), and when the navigation to the page that is there by
// then began (`page_ms`), by the browser's own clock. The last is not between the others if the first page has navigated
// to another one by itself.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { MeasureVideo } = await part("core/engine/command/measure/video");
const { SeleniumRunner } = await part("core/seleniumRunner");

// Just before and just after the last navigation began. A return visit has two navigations, and the last one is
// measured.
let beganMs = null;
let begunMs = null;
// When the navigation to the page began. In a repeatable page, scripts see a made-up `performance.timeOrigin`, and the
// real one is kept under this symbol (replay/repeatable.js).
const TIME_ORIGIN = 'return window[Symbol.for("eyelevel.repeatable")] ?? performance.timeOrigin;';

replace(
  SeleniumRunner,
  "loadAndWait",
  () =>
    async function (url, pageCompleteCheck) {
      [beganMs, begunMs] = await this.driver.executeAsyncScript(`
        const [noted] = arguments;
        const now = () => performance.timeOrigin + performance.now();
        document.getElementById("browsertime-orange")?.remove();
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const began = now();
          window.location = ${JSON.stringify(url)};
          noted([began, now()]);
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
        const pageMs = await this.browser.getDriver().executeScript(TIME_ORIGIN);
        const document = JSON.stringify({ began_ms: beganMs, begun_ms: begunMs, page_ms: pageMs });
        writeFileSync(join(this.options.resultDir, "navigation.json"), document);
      } catch (error) {
        console.log(`the page does not say when it was navigated to: ${error}`); // it has a dialog open, for example
      }
    },
);
