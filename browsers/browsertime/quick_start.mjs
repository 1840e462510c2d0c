// Loaded into Browsertime's Node before Browsertime itself, where a page counts as finished soon after its load event:
// Browsertime then asks at once whether it has, without the two seconds that it waits before it first does. The driver
// answers no script before the load event, so that no script runs in the page while it loads.
import { part, replace } from "./browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "loadAndWait",
  () =>
    async function (url, pageCompleteCheck) {
      // As Browsertime navigates: from the page itself, so that no time of the driver's is in the navigation's.
      await this.driver.executeScript(`requestAnimationFrame(() => requestAnimationFrame(() => {
        window.location = ${JSON.stringify(url)};
      }));`);
      await this._waitOnPageCompleteCheck(pageCompleteCheck, url);
    },
);
