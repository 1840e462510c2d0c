// Loaded into Browsertime's Node before Browsertime itself: what it asks a page at the end it asks at once, without its
// benchmark of the processor, which takes as long as all the rest, and holds up Node as it starts, too.
import { createRequire, Module } from "node:module";
import { fileURLToPath } from "node:url";
import { PROGRAM, part, replace } from "./browsertime.mjs";

const BENCHMARK = "cpuBenchmark";

// Browsertime first tries each script as a module of its own, which would run this one.
const file = fileURLToPath(new URL(`../browserscripts/browser/${BENCHMARK}.js`, PROGRAM));
createRequire(PROGRAM).cache[file] = Object.assign(new Module(file), { filename: file, loaded: true });

const { SeleniumRunner } = await part("core/seleniumRunner.js");

replace(
  SeleniumRunner,
  "runScripts",
  (original) =>
    // `categories`: category → name → script. Resolves to what each script says, in the same form.
    async function (categories) {
      const { [BENCHMARK]: benchmark, ...browser } = categories.browser;
      const others = { ...categories, browser };
      try {
        const results = answers(others, await this.driver.executeScript(`return [${list(others).map(answer)}];`, null));
        // Windows that the page opened, and the dialog for printing, stand in front of it, and in its film.
        if (results.custom) results.custom.windows = (await this.driver.getAllWindowHandles()).length;
        return results;
      } catch (error) {
        console.log(`the page is asked one script after another, since it does not answer all at once: ${error}`);
        return original.call(this, others);
      }
    },
);

function list(categories) {
  return Object.entries(categories).flatMap(([category, scripts]) =>
    Object.entries(scripts).map(([name, { content }]) => ({ category, name, content })),
  );
}

// An expression that comes to what a script does, or to why it fails. Each script is an expression and a semicolon.
function answer({ content }) {
  const expression = content.trim().replace(/;$/, "");
  return `(() => { try { return { value: ${expression} }; } catch (error) { return { error: String(error) }; } })()`;
}

// The answers to all scripts, in their order, in the form of `categories`.
function answers(categories, outcomes) {
  const results = Object.fromEntries(Object.keys(categories).map((category) => [category, {}]));
  list(categories).forEach(({ category, name }, place) => {
    const { value, error } = outcomes[place];
    if (error) console.log(`the script ${name} fails in the page: ${error}`);
    else if (value !== null && value !== undefined) results[category][name] = value;
  });
  return results;
}
