// Loaded into Browsertime's Node before Browsertime itself: the page is asked whether it has finished when it can have
// at the earliest, by what it said before, and not five times a second. It has finished when no request is under way,
// either: what has not ended, the page does not know, and a slow answer would be missing. How many there are, each
// browser's own module says (`requestsUnderWay`). Once, when the page has been quiet for `quietSignTime` ms, the
// event "quiet" is emitted (`turn.mjs`); for that it may be asked once more.
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "_waitOnPageCompleteCheck",
  () =>
    // `check`: page_complete.js.
    async function (check) {
      const { pageCompleteWaitTime, pageCompleteCheckPollTimeout, quietSignTime, timeouts } = this.options;
      const over = new AbortController();
      // A page may say anything.
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
            // From the end of an answer on, the page must be quiet again for so long, so this is soon enough.
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
