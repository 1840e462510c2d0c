// Lighthouse's BenchmarkIndex, by its definition: the mean of how often a second a string of 10,000 letters can be built
// letter by letter, and of how often 100,000 integers can be copied from one array to another, each divided by ten. It is
// counted for a second each, not half of one, since a process that is stopped again and again gets now more, now less of
// it. Both are done once before, so that they are compiled: on a slow processor that would take most of the time. Says
// "ready" then, and prints the index for each line that comes.

import { createInterface } from "node:readline";

const HALF_MS = 1000;
const LETTERS = 10_000;
const INTEGERS = 100_000;
// The clock is asked after so many.
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
