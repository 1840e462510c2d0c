// Loaded into Browsertime's Node before Browsertime itself: a page is navigated to once the browser is idle and its
// film has some frames of orange, instead of after a fixed time. How long each took is in `readiness.json` of the
// results.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { part, replace } from "./browsertime.mjs";
import { untilFilmed } from "./film_frames.mjs";
import { Threads, untilIdle } from "./idle.mjs";

// What films is Browsertime's as well.
const APART = ["ffmpeg"];
// The first frame has been handed on to the screen when the second begins.
const PAINTED = "return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));";

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "loadAndWait",
  (original) =>
    async function (...page) {
      const { resultDir, readiness } = this.options;
      const beganMs = performance.now();
      await this.driver.executeScript(PAINTED);
      const paintedMs = performance.now() - beganMs;
      const [browser, film] = await Promise.all([
        untilIdle(new Threads(APART), readiness.browser),
        untilFilmed(readiness.progress, readiness.film),
      ]);
      // A return visit has two loads, of which the last is measured.
      const evidence = { painted_ms: paintedMs, browser, film };
      writeFileSync(join(resultDir, "readiness.json"), JSON.stringify(evidence));
      return original.apply(this, page);
    },
);
