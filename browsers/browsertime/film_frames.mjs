// How many frames a film has, by what FFmpeg says of its progress (`-progress FILE`) while it films.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

// A third of a frame.
const LOOK_MS = 10;

// Waits until the film whose progress is in a file has `frames` more than now, but at most `limit_ms`. Resolves to how
// long that took (`waited_ms`) and how many it was, or to null where there is no film.
export async function untilFilmed(file, { frames, limit_ms: limitMs }) {
  const beganMs = performance.now();
  const atFirst = framesSoFar(file);
  if (atFirst === null) return null;
  for (;;) {
    const more = framesSoFar(file) - atFirst;
    const waitedMs = performance.now() - beganMs;
    if (more >= frames || waitedMs >= limitMs) return { waited_ms: waitedMs, frames: more };
    await delay(LOOK_MS);
  }
}

function framesSoFar(file) {
  let progress;
  try {
    progress = readFileSync(file, "utf8");
  } catch {
    return null;
  }
  return Number([...progress.matchAll(/^frame=\s*(\d+)$/gm)].at(-1)?.[1] ?? 0);
}
