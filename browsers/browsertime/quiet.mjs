// Loaded into Browsertime's Node before Browsertime itself: the page is asked whether it has finished when it can have
// at the earliest, by what it said before, and not five times a second. Once, when it has been quiet for
// `quietSignTime` ms, the event "quiet" is emitted (`turn.mjs`); for that it may be asked once more.
import { setTimeout as delay } from "node:timers/promises";
import { part, replace } from "./browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "_waitOnPageCompleteCheck",
  () =>
    // `check` returns for how many ms the page cannot have finished yet, 0 when it has, and how long it has been quiet.
    async function (check) {
      const { pageCompleteWaitTime, pageCompleteCheckPollTimeout, quietSignTime, timeouts } = this.options;
      const over = new AbortController();
      // What a page says may be anything.
      const pauseMs = (waitMs) => {
        const pause = Math.min(waitMs, pageCompleteWaitTime);
        return pause >= 1 ? pause : pageCompleteCheckPollTimeout;
      };
      const finished = async () => {
        let signMs = quietSignTime ?? Number.POSITIVE_INFINITY;
        while (!over.signal.aborted) {
          const answer = await this.driver.executeScript(check, pageCompleteCheckPollTimeout, pageCompleteWaitTime);
          const [waitMs, quietMs] = Array.isArray(answer) ? answer : [];
          if (waitMs === 0) return true;
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
