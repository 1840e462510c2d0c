// Lighthouse's BenchmarkIndex, by its definition: the mean of two rates per second, each divided by ten. One is how
// often a string of 10,000 letters can be built letter by letter, the other how often 100,000 integers can be copied
// from one array to another. Each is counted for a second, not for half of one as in Lighthouse, since a limited
// process is stopped again and again, and its share of a short time varies. Both run once beforehand, so that they are
// compiled: on a slow processor compiling would otherwise take most of the time. Then this prints "ready", and the
// index for each line of its input.

import { createInterface } from "node:readline";

const HALF_MS = 1000;
const LETTERS = 10_000;
const INTEGERS = 100_000;
// The clock is read once per this many rounds.
const BETWEEN_LOOKS = 10;

function ratePerSecond(work) {
  const began = performance.now();
  let count = 0;
  let tookMs = 0;
  while (tookMs < HALF_MS) {
    for (let i = 0; i < BETWEEN_LOOKS; i++) work(count++);
    tookMs = performance.now() - began;
  }
  return (1000 * count) / tookMs;
}

function buildString() {
  let text = "";
  for (let i = 0; i < LETTERS; i++) text += "a";
  if (text.length === 1) throw new Error("never, but the compiler does not know");
}

const arrays = [[], []];
for (let i = 0; i < INTEGERS; i++) arrays[0][i] = arrays[1][i] = i;

function copyIntegers(turn) {
  const source = arrays[turn % 2];
  const target = arrays[(turn + 1) % 2];
  for (let i = 0; i < source.length; i++) target[i] = source[i];
}

const index = () => (ratePerSecond(buildString) / 10 + ratePerSecond(copyIntegers) / 10) / 2;

index();
console.log("ready");
for await (const _ of createInterface({ input: process.stdin })) console.log(index());
