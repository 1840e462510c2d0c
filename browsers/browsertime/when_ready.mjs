// Loaded into Browsertime's Node before Browsertime itself: a page is navigated to once the browser is idle and its
// film has begun, instead of after a fixed time. The orange is painted before the load's turn comes (`turn.mjs`), so
// that all that is filmed is orange, and the film begins while the browser is looked at: the recorder has the screen
// when it says that it records. How long each took is in `readiness.json` of the results.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { part, replace } from "./browsertime.mjs";
import { Threads, untilIdle } from "./idle.mjs";

// The program that films is Browsertime's child as well.
const APART = ["film-recorder"];
// The beginning of a dialog's text, by which one knows it again.
const DIALOG_LETTERS = 200;
// The first frame has been handed on to the screen when the second begins.
const PAINTED = "return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));";
const IS_ORANGE = "return document.getElementById('browsertime-orange') !== null;";

const { Iteration } = await part("core/engine/iteration.js");
const { MeasureVideo } = await part("core/engine/command/measure/video.js");
const { SeleniumRunner } = await part("core/seleniumRunner.js");
const { setOrangeBackground } = await part("video/screenRecording/setOrangeBackground.js");
const { Video } = await part("video/video.js");

// The beginning of the film.
let filming = Promise.resolve(null);

// `error`, which then says in its message why a page could not be loaded: Browsertime's own has that in a field alone.
function named(error) {
  const cause = error.extra?.cause ?? error;
  if (cause.name === "UnexpectedAlertOpenError") {
    // ChromeDriver has the text in its message alone.
    const text = cause.getAlertText() ?? /\{Alert text : ([^]*)\}/.exec(cause.message)?.[1] ?? cause.message;
    error.message = `the page opened a dialog: ${JSON.stringify(text.slice(0, DIALOG_LETTERS))}`;
  } else if (cause !== error) {
    error.message += `: ${cause.message}`;
  }
  return error;
}

async function paint(driver, { video }) {
  if (video) await setOrangeBackground(driver);
  await driver.executeScript(PAINTED);
}

replace(
  Iteration,
  "_runScripts",
  (original) =>
    async function (script, context, commands, options, browser, engine) {
      await paint(browser.getDriver(), options);
      return original.call(this, script, context, commands, options, browser, engine);
    },
);

replace(
  MeasureVideo,
  "start",
  () =>
    async function (page, index) {
      const driver = this.browser.getDriver();
      // After the first of two visits it is gone.
      if (!(await driver.executeScript(IS_ORANGE))) await paint(driver, this.options);
      this.video = new Video(this.storageManager, this.options, this.browser);
      const beganMs = performance.now();
      filming = this.video.record(page, index).then(() => ({ waited_ms: performance.now() - beganMs }));
      filming.catch(() => {}); // whoever waits for it learns of it
    },
);

replace(
  SeleniumRunner,
  "loadAndWait",
  (original) =>
    async function (...page) {
      const { resultDir, readiness } = this.options;
      const [browser, film] = await Promise.all([
        untilIdle(new Threads(APART), readiness),
        filming,
      ]);
      // A return visit has two loads, of which the last is measured.
      writeFileSync(join(resultDir, "readiness.json"), JSON.stringify({ browser, film }));
      try {
        return await original.apply(this, page);
      } catch (error) {
        throw named(error);
      }
    },
);
