// Loaded into Browsertime's Node before Browsertime itself: the navigation begins as soon as the browser is idle and
// the film has begun, instead of after a fixed time. The orange is painted before the load's turn comes (`turn.mjs`),
// so that the film begins with orange. The film is started during the wait for the idle browser: when the recorder
// announces that it records, it has stored the screen. `readiness.json` in the results says how long both waits took.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { part, replace } from "./browsertime.mjs";
import { Threads, untilIdle } from "./idle.mjs";

// The recorder is Browsertime's child, like the browser, but need not be idle.
const APART = ["film-recorder"];
// An error quotes this many letters of a dialog's text, so that a person recognises the dialog.
const DIALOG_LETTERS = 200;
// When the second frame begins, the first one has been passed to the screen.
const PAINTED = "return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));";
const IS_ORANGE = "return document.getElementById('browsertime-orange') !== null;";

const { Iteration } = await part("core/engine/iteration");
const { MeasureVideo } = await part("core/engine/command/measure/video");
const { SeleniumRunner } = await part("core/seleniumRunner");
const { setOrangeBackground } = await part("video/screenRecording/setOrangeBackground");
const { Video } = await part("video/video");

// Resolves when the film has begun, to how long that took.
let filming = Promise.resolve(null);

// Puts the reason why a page could not be loaded into the message of `error`, and returns it. In Browsertime's own
// error, the reason is only in a field.
function named(error) {
  const cause = error.extra?.cause ?? error;
  if (cause.name === "UnexpectedAlertOpenError") {
    // ChromeDriver has the dialog's text only in the message of its error.
    const text = cause.getAlertText() ?? /\{Alert text : ([^]*)\}/.exec(cause.message)?.[1] ?? cause.message;
    error.message = `the page opened a dialog: ${JSON.stringify(text.slice(0, DIALOG_LETTERS))}`;
  } else if (cause !== error) {
    error.message += `: ${cause.message}`;
  }
  return error;
}

// Rejects with the reason why the recorder could not film. The last line of the error's message is the recorder's own;
// the lines before it are its command.
async function refused(error) {
  throw new Error(error.message.trim().split("\n").at(-1));
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
      // In a return visit, the first visit has removed the orange.
      if (!(await driver.executeScript(IS_ORANGE))) await paint(driver, this.options);
      this.video = new Video(this.storageManager, this.options, this.browser);
      const beganMs = performance.now();
      filming = this.video.record(page, index).then(
        () => ({ waited_ms: performance.now() - beganMs }),
        refused,
      );
      filming.catch(() => {}); // whoever waits for it learns of it
    },
);

// A film that could not begin cannot be ended either.
for (const name of ["stop", "stopAsError"])
  replace(
    MeasureVideo,
    name,
    (original) =>
      function (...parameters) {
        return original.apply(this, parameters).catch(refused);
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
      // In a return visit, the second load overwrites the first one's file, and the second load is the measured one.
      writeFileSync(join(resultDir, "readiness.json"), JSON.stringify({ browser, film }));
      try {
        return await original.apply(this, page);
      } catch (error) {
        throw named(error);
      }
    },
);
