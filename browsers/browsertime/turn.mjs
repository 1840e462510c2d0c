// Loaded into Browsertime's Node before Browsertime itself, so that a load begins when it is its turn. Over the standard
// input, a socket, it is told "screen" when the display accepts clients, and starts the browser; says "ready" when that
// shows an empty page, and goes on when it is told "begin"; it says "quiet" when the measured page has been quiet for a
// while (`quiet.mjs`), and "over" when the film has ended and the page was asked when it was navigated to
// (`navigation.mjs`), after which nothing is measured any more. When the other end is closed before the load begins, it
// ends. The waits immediately before a page is navigated to (`when_ready.mjs`) come after "begin".
import { Socket } from "node:net";
import { part, replace } from "./browsertime.mjs";

const { Iteration } = await part("core/engine/iteration.js");
const { Measure } = await part("core/engine/command/measure.js");
const { MeasureVideo } = await part("core/engine/command/measure/video.js");

const turns = new Socket({ fd: 0, readable: true, writable: true });
const giveUp = () => process.exit(1);
turns.once("end", giveUp);
// The next sign. It comes only after the previous one has been answered.
const sign = () => new Promise((come) => turns.once("data", come));
const screen = sign();

replace(
  Iteration,
  "_startBrowser",
  (original) =>
    async function (...parameters) {
      await screen;
      return original.apply(this, parameters);
    },
);

replace(
  Iteration,
  "_runScripts",
  (original) =>
    async function (...parameters) {
      const begin = sign();
      turns.write("ready\n");
      await begin;
      turns.off("end", giveUp);
      return original.apply(this, parameters);
    },
);

replace(
  Measure,
  "start",
  (original) =>
    async function (...parameters) {
      // A return visit has a load before, which is not the measured one.
      process.on("quiet", () => turns.write("quiet\n"));
      return original.apply(this, parameters);
    },
);

replace(
  MeasureVideo,
  "stop",
  (original) =>
    async function (...parameters) {
      await original.apply(this, parameters);
      turns.write("over\n");
    },
);
