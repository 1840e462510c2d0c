// Loaded into Browsertime's Node before Browsertime itself, so that a load begins when it is its turn. The standard
// input is a socket, over which Browsertime receives and sends these messages:
// - It receives "screen" when the display accepts clients, and starts the browser.
// - It sends "ready" when the browser shows an empty page, and waits.
// - It receives "begin", and begins the load. The waits before the navigation (`when_ready.mjs`) come after this.
// - It sends "quiet" when the measured page has been quiet for a while (`quiet.mjs`).
// - It sends "over" when the film has ended and the page was asked for the time of its navigation (`navigation.mjs`).
//   Nothing is measured any more after this.
// If the other end of the socket is closed before the load begins, Browsertime ends.
import { Socket } from "node:net";
import { part, replace } from "./browsertime.mjs";

const { Iteration } = await part("core/engine/iteration");
const { Measure } = await part("core/engine/command/measure");
const { MeasureVideo } = await part("core/engine/command/measure/video");

const turns = new Socket({ fd: 0, readable: true, writable: true });
const giveUp = () => process.exit(1);
turns.once("end", giveUp);
// The next message. It comes only after the previous one has been answered.
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
      // Listen only from the measured load on: in a return visit, there is a load before it.
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
