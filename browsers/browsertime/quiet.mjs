// Loaded into Browsertime's Node before Browsertime itself. Browsertime would ask the page five times a second whether
// it has finished. Instead, each answer of the page says when it can have finished at the earliest, and the page is
// asked again at that time. It has finished only if no request is under way, either: a page does not know of responses
// that have not ended, so a slow one would be missing. Each browser has its own module that counts these requests
// (`requestsUnderWay`). When the page has been quiet for `quietSignTime` ms, the event "quiet" is emitted once
// (`turn.mjs`); to find that time, the page may be asked once more.
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner");

replace(
  SeleniumRunner,
  "_waitOnPageCompleteCheck",
  () =>
    // `check`: page_complete.js.
    async function (check) {
      const { pageCompleteWaitTime, pageCompleteCheckPollTimeout, quietSignTime, timeouts } = this.options;
      const over = new AbortController();
      // The page's answer may be any value.
      const pauseMs = (waitMs) => {
        const pause = Math.min(waitMs, pageCompleteWaitTime);
        return pause >= 1 ? pause : pageCompleteCheckPollTimeout;
      };
      const finished = async () => {
        let signMs = quietSignTime ?? Number.POSITIVE_INFINITY;
        while (!over.signal.aborted) {
          const answer = await this.driver.executeScript(check, pageCompleteCheckPollTimeout, pageCompleteWaitTime);
          const [waitMs, quietMs, patienceMs] = Array.isArray(answer) ? answer : [];
          if (waitMs === 0) {
            if (patienceMs === 0 || (await this.requestsUnderWay()) === 0) return true;
            // When the last response ends, the page must still be quiet for the quiet time. So a pause of this length
            // before the next question delays nothing.
            await delay(pauseMs(Math.min(patienceMs, pageCompleteWaitTime)));
            continue;
          }
          if (quietMs >= signMs) {
            process.emit("quiet");
            signMs = Number.POSITIVE_INFINITY;
          }
          await delay(pauseMs(Math.min(waitMs, Math.ceil(signMs - quietMs))));
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
