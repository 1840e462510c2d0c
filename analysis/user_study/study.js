// A participant's session: draws a plan, then loads each film completely, plays it, and asks about it.
// The state is kept until the tab is closed, so that a reloaded page resumes at the same place.

const answered = await fetch("study.json");
const study = await answered.json();
// The kit's own server announces that it takes votes; with any other server, participants download their votes.
const collects = answered.headers.get("eyelevel-votes") === "yes";
const { words } = study;
const COLUMNS = ["study", "participant", "group", "part", "trial", "trials", "clip", "swapped", "answer", "plays", "answer_ms",
  "away_ms", "still_ms", "session_ms", "layout", "width", "height", "answered_at"];
const SEND_LIMIT_MS = 15000;

const main = document.querySelector("main");
const find = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const event = (target, name) => new Promise((done) => target.addEventListener(name, done, { once: true }));
document.addEventListener("submit", (submitted) => submitted.preventDefault());

// Randomness -------------------------------------------------------------------------------------------------------

const randomHex = (bytes) => [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function shuffled(values) {
  const order = [...values];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

// A part's clips, drawn at random: the same number from each group, as far as possible.
function drawn(part) {
  const groups = grouped(shuffled(part.clips));
  const chosen = [];
  for (let round = 0; chosen.length < part.count; round++) {
    for (const group of shuffled(groups)) {
      if (round < group.length && chosen.length < part.count) chosen.push(group[round][0]);
    }
  }
  return chosen;
}

function grouped(clips) {
  const groups = {};
  for (const clip of clips) (groups[clip[1]] ??= []).push(clip);
  return Object.values(groups);
}

function planOf(part) {
  const clips = shuffled([...drawn(part), ...part.always]);
  // Half of the pairs have their sides swapped.
  const swaps = shuffled(clips.map((_, place) => part.name === "pairs" && place % 2 === 1));
  const practice = part.practice.map((clip) => ({ part: part.name, clip, swapped: false, practice: true }));
  return [...practice, ...clips.map((clip, place) => ({ part: part.name, clip, swapped: swaps[place], practice: false }))];
}

// The state --------------------------------------------------------------------------------------------------------

const address = new URLSearchParams(location.search);
const asked = study.parts.filter((part) => !address.has("part") || part.name === address.get("part"));
const parts = asked.length ? asked : study.parts;

function newState() {
  const group = (address.get("group") ?? "").toLowerCase().replace(/[^a-z0-9-]/g, "").slice(0, 32);
  return { study: study.study, participant: randomHex(16), group, plan: parts.flatMap(planOf), place: 0, votes: [], sent: 0, begunAt: null };
}

function keptState() {
  try {
    const state = JSON.parse(sessionStorage.getItem("state"));
    return state?.study === study.study ? state : null;
  } catch {
    return null;
  }
}

function keep() {
  try {
    sessionStorage.setItem("state", JSON.stringify(state));
  } catch {
    // Without storage, a reloaded page starts a new session.
  }
}

const state = keptState() ?? newState();

// Votes ------------------------------------------------------------------------------------------------------------

let sending = Promise.resolve(true);

// Send the votes that were not sent so far, in order. Resolves to whether all votes are sent.
function send() {
  sending = sending.then(async () => {
    while (state.sent < state.votes.length) {
      try {
        const limit = AbortSignal.timeout(SEND_LIMIT_MS);
        const body = JSON.stringify(state.votes[state.sent]);
        const answer = await fetch("votes", { method: "POST", headers: { "content-type": "application/json" }, body, signal: limit });
        if (!answer.ok) return false;
      } catch {
        return false;
      }
      state.sent++;
      keep();
    }
    return true;
  });
  return sending;
}

const csv = () => [COLUMNS, ...state.votes.map((vote) => COLUMNS.map((name) => vote[name]))].map((row) => row.join(",") + "\n").join("");

// Screens ----------------------------------------------------------------------------------------------------------

function show(id) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
  scrollTo(0, 0);
  find(id).querySelector("h1").focus();
}

// Films ------------------------------------------------------------------------------------------------------------

const films = new Map();

// Load the whole film of a clip. Resolves to a URL that a video element plays.
async function fetched(clip, watch) {
  const answer = await fetch(`clips/${clip}.mp4`);
  if (!answer.ok) throw new Error(answer.statusText);
  const size = Number(answer.headers.get("content-length"));
  const reader = answer.body.getReader();
  const pieces = [];
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    bytes += value.length;
    if (size) watch(Math.min(100, Math.floor((100 * bytes) / size)));
  }
  return URL.createObjectURL(new Blob(pieces, { type: "video/mp4" }));
}

async function loadFilm(clip, watch) {
  const url = await fetched(clip, watch);
  const video = document.createElement("video");
  video.muted = video.playsInline = true;
  video.preload = "auto";
  const ready = Promise.race([
    // The film is already loaded, but some browsers decode nothing until playback is requested.
    event(video, "loadedmetadata"),
    event(video, "error").then(() => Promise.reject(new Error("this browser cannot play the film"))),
  ]);
  video.src = url;
  await ready;
  return video;
}

function filmOf(clip, watch = () => {}) {
  if (!films.has(clip)) {
    const film = loadFilm(clip, watch);
    films.set(clip, film);
    film.catch(() => films.delete(clip));
  }
  return films.get(clip);
}

function forget(clip) {
  filmOf(clip).then((video) => URL.revokeObjectURL(video.src), () => {});
  films.delete(clip);
}

const canvases = [...document.querySelectorAll("canvas")];

// Both sides come from the same picture of one film, so they cannot drift apart.
function draw(video, swapped) {
  const { width, height } = study;
  canvases.forEach((canvas, place) => {
    const side = swapped ? 1 - place : place;
    canvas.getContext("2d").drawImage(video, side * width, 0, width, height, 0, 0, width, height);
  });
}

function blank() {
  for (const canvas of canvases) {
    canvas.width = study.width;
    canvas.height = study.height;
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#ddd";
    pen.fillRect(0, 0, canvas.width, canvas.height);
  }
}

// Play a film from its beginning to its end, or until `stop`. Resolves to the longest time for which it stood still or
// was late (ms).
async function play(video, swapped, stop) {
  video.currentTime = 0;
  const ended = Promise.race([event(video, "ended"), event(stop, "abort").then(() => video.pause())]);
  await video.play();
  const begun = performance.now();
  let last = begun, still = 0, handle;
  const onFrame = (now) => {
    still = Math.max(still, now - last, now - begun - 1000 * video.currentTime);
    last = now;
    // Browsers may pause the films of a hidden page.
    if (video.paused && !video.ended && !stop.aborted) video.play().catch(() => {});
    draw(video, swapped);
    handle = requestAnimationFrame(onFrame);
  };
  handle = requestAnimationFrame(onFrame);
  await ended;
  cancelAnimationFrame(handle);
  draw(video, swapped);
  return Math.max(still, performance.now() - begun - 1000 * video.duration);
}

// How long the page was not in the foreground since `begin` (ms).
const away = {
  total: 0,
  since: null,
  begin() {
    this.total = 0;
    this.since = document.hidden || !document.hasFocus() ? performance.now() : null;
  },
  change() {
    const gone = document.hidden || !document.hasFocus();
    if (gone) this.since ??= performance.now();
    else this.total = this.now(), this.since = null;
  },
  now() {
    return this.total + (this.since === null ? 0 : performance.now() - this.since);
  },
};
for (const name of ["blur", "focus"]) addEventListener(name, () => away.change());
document.addEventListener("visibilitychange", () => away.change());

// A trial ----------------------------------------------------------------------------------------------------------

const form = find("answer"), fieldset = form.querySelector("fieldset"), button = find("play"), slider = form.elements.rating;
const counted = state.plan.filter((trial) => !trial.practice);

function touch() {
  slider.classList.remove("untouched");
  const word = words.scale[Math.round((slider.value - slider.min) / 10)];
  slider.setAttribute("aria-valuetext", word);
  form.querySelector(".chosen").textContent = word;
  find("next").disabled = false;
}
for (const name of ["input", "pointerup", "keyup"]) {
  slider.addEventListener(name, ({ key }) => key !== "Tab" && key !== "Shift" && touch());
}
form.addEventListener("change", ({ target }) => target.name === "choice" && (find("next").disabled = false));

async function loaded(clip) {
  for (;;) {
    button.disabled = true;
    try {
      button.textContent = fill(words.loading, { percent: 0 });
      return await filmOf(clip, (percent) => (button.textContent = fill(words.loading, { percent })));
    } catch {
      button.textContent = words.cannot_load;
      button.disabled = false;
      await event(button, "click");
    }
  }
}

async function ask(trial) {
  const place = counted.indexOf(trial) + 1;
  find("progress").textContent = trial.practice ? words.practice : fill(words.progress, { number: place, count: counted.length });
  const context = study.parts.find((part) => part.name === trial.part).contexts[trial.clip];
  find("context").textContent = context ?? "";
  find("context").hidden = !context;
  main.classList.toggle("rates", trial.part === "ratings");
  form.reset();
  slider.classList.add("untouched");
  slider.setAttribute("aria-valuetext", "–");
  form.querySelector(".chosen").textContent = "\u00a0";
  fieldset.disabled = find("next").disabled = true;
  blank();
  show("trial");
  const video = await loaded(trial.clip);
  button.textContent = words.play;
  button.disabled = false;
  button.focus();
  await event(button, "click");
  away.begin();
  const begun = performance.now();
  const stop = new AbortController();
  let plays = 0, still = 0;
  const playOnce = async () => {
    plays++;
    button.disabled = true;
    button.textContent = words.playing;
    find("films").scrollIntoView({ block: "nearest" });
    const longest = await play(video, trial.swapped, stop.signal);
    if (stop.signal.aborted) return;
    if (plays === 1) still = longest;
    button.textContent = words.replay;
    button.disabled = fieldset.disabled = false;
  };
  await playOnce();
  const following = state.plan[state.place + 1];
  if (following) filmOf(following.clip).catch(() => {});
  (trial.part === "ratings" ? slider : form.querySelector("[name=choice]")).focus();
  button.addEventListener("click", playOnce);
  await event(form, "submit");
  stop.abort();
  button.removeEventListener("click", playOnce);
  const answer_ms = performance.now() - begun, away_ms = away.now();
  forget(trial.clip);
  const vote = {
    study: study.study,
    participant: state.participant,
    group: state.group,
    part: trial.part,
    trial: place,
    trials: counted.length,
    clip: trial.clip,
    swapped: trial.swapped,
    answer: trial.part === "ratings" ? slider.value : new FormData(form).get("choice"),
    plays,
    answer_ms: Math.round(answer_ms),
    away_ms: Math.round(away_ms),
    still_ms: Math.round(still),
    session_ms: Date.now() - state.begunAt,
    layout: trial.part === "ratings" ? "single" : canvases[0].offsetTop === canvases[1].offsetTop ? "beside" : "stacked",
    width: innerWidth,
    height: innerHeight,
    answered_at: new Date().toISOString(),
  };
  if (!trial.practice) state.votes.push(vote);
  state.place++;
  keep();
  if (collects) send();
}

// The session ------------------------------------------------------------------------------------------------------

async function end() {
  show("end");
  find("unsent").hidden = collects && (await send());
  find("end").dataset.done = "yes";
  find("why").textContent = collects ? words.unsent : words.return_answers;
  find("download").href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  find("download").download = `votes-${state.participant}.csv`;
  find("again").hidden = !collects;
  find("again").addEventListener("click", async () => { find("unsent").hidden = await send(); });
}

main.dataset.ready = "yes";
if (!state.begunAt) {
  await event(find("consent"), "submit");
  state.begunAt = Date.now();
  keep();
}
let explained = null;
while (state.place < state.plan.length) {
  const trial = state.plan[state.place];
  if (trial.part !== explained) {
    explained = trial.part;
    filmOf(trial.clip).catch(() => {});
    show(trial.part);
    await event(find(trial.part).querySelector("button"), "click");
  }
  await ask(trial);
}
await end();
