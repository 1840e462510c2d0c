// Determines whether the other processes in this jail are idle, from the kernel's account of each of their threads.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

// The time from one look at the threads to the next; a look takes about 3 ms.
const LOOK_MS = 20;

// The threads of all processes in `proc`, except this process and those of the programs in `apart`.
export class Threads {
  constructor(apart, proc = "/proc") {
    this.apart = apart;
    this.proc = proc;
    // The folder of a thread → how long the thread had run or waited at the last look.
    this.times = new Map();
  }

  // For how many ms all threads together have run, or waited for a processor. It is null if a thread has ended since
  // the last look, since it is not known how long that thread ran; and 0 if the kernel keeps no account.
  timeMs() {
    const times = new Map();
    for (const thread of this._folders()) {
      const account = read(`${thread}/schedstat`);
      if (account === null) continue;
      const [runNs, waitNs] = account.split(" ").map(Number);
      times.set(thread, (runNs + waitNs) / 1e6);
    }
    const allRemain = [...this.times.keys()].every((thread) => times.has(thread));
    this.times = times;
    return allRemain ? [...times.values()].reduce((sum, time) => sum + time, 0) : null;
  }

  // Whether all threads sleep. A thread that is ready to run or waits for a disk does not sleep, although its account
  // may not show this yet.
  allSleep() {
    return [...this.times.keys()].every((thread) => {
      const status = read(`${thread}/stat`) ?? "";
      return !"RD".includes(status[status.lastIndexOf(")") + 2]); // proc_pid_stat(5)
    });
  }

  _folders() {
    const processes = readdirSync(this.proc).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
    const others = processes.filter((name) => !this.apart.includes(read(`${this.proc}/${name}/comm`)?.trim()));
    return others.flatMap((name) => {
      const folder = `${this.proc}/${name}/task`;
      try {
        return readdirSync(folder).map((thread) => `${folder}/${thread}`);
      } catch {
        return []; // it has ended meanwhile
      }
    });
  }
}

// Waits until `threads` are idle: all sleep, and together they have used less than `used_ms` in the last `window_ms`.
// Waits no longer than `limit_ms`. Resolves to how long this took (`waited_ms`), whether the threads were idle then
// (`is_idle`), and how much time they had used in the last window (`used_ms`, null if that is unknown).
export async function untilIdle(threads, { window_ms: windowMs, used_ms: mostMs, limit_ms: limitMs }) {
  const beganMs = performance.now();
  let looks = [];
  for (;;) {
    const look = { atMs: performance.now(), timeMs: threads.timeMs() };
    if (look.timeMs === null) looks = [];
    else if (look.timeMs > 0) looks.push(look);
    const reference = looks.findLast((earlier) => look.atMs - earlier.atMs >= windowMs);
    const usedMs = reference ? look.timeMs - reference.timeMs : null;
    const isIdle = usedMs !== null && usedMs < mostMs && threads.allSleep();
    const waitedMs = performance.now() - beganMs;
    if (isIdle || waitedMs >= limitMs) return { waited_ms: waitedMs, is_idle: isIdle, used_ms: usedMs };
    await delay(Math.min(LOOK_MS, limitMs - waitedMs));
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null; // whose it was has ended meanwhile
  }
}
