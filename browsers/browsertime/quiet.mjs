// Loaded into Browsertime's Node before Browsertime itself: the page is asked whether it has finished when it can have
// at the earliest, by what it said before, and not five times a second.
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "_waitOnPageCompleteCheck",
  () =>
    // `check` returns for how many ms the page cannot have finished yet, 0 when it has.
    async function (check) {
      const { pageCompleteWaitTime, pageCompleteCheckPollTimeout, timeouts } = this.options;
      const over = new AbortController();
      // What a page says may be anything.
      const pauseMs = (waitMs) => {
        const pause = Math.min(waitMs, pageCompleteWaitTime);
        return pause >= 1 ? pause : pageCompleteCheckPollTimeout;
      };
      const finished = async () => {
        while (!over.signal.aborted) {
          const waitMs = await this.driver.executeScript(check, pageCompleteCheckPollTimeout, pageCompleteWaitTime);
          if (waitMs === 0) return true;
          await delay(pauseMs(waitMs));
        }
      };
      try {
        const limit = delay(timeouts.pageCompleteCheck, false, { signal: over.signal });
        if (await Promise.race([finished(), limit])) return;
      } catch (error) {
        if (error.name !== "TimeoutError") throw error; // the driver's: the page does not answer
      } finally {
        over.abort();
      }
      console.log(`the page did not finish within ${timeouts.pageCompleteCheck} ms`);
    },
);
