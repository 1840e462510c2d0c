// Loaded into Browsertime's Node before Browsertime itself: all scripts that ask a page something at its end run in a
// single request. Browsertime's benchmark of the processor is left out: it takes as long as all other scripts together,
// and also delays Node when it starts.
import { createRequire, Module } from "node:module";
import { fileURLToPath } from "node:url";
import { PROGRAM, part, replace } from "./browsertime.mjs";

const BENCHMARK = "cpuBenchmark";

// Browsertime first imports each script as a module, which would run the benchmark in Node. So an empty module replaces
// it.
const file = fileURLToPath(new URL(`../browserscripts/browser/${BENCHMARK}.js`, PROGRAM));
createRequire(PROGRAM).cache[file] = Object.assign(new Module(file), { filename: file, loaded: true });

const { SeleniumRunner } = await part("core/seleniumRunner");

replace(
  SeleniumRunner,
  "runScripts",
  (original) =>
    // `categories`: category → name → script. Resolves to the scripts' results in the same form.
    async function (categories) {
      const { [BENCHMARK]: benchmark, ...browser } = categories.browser;
      const others = { ...categories, browser };
      try {
        const results = answers(others, await this.driver.executeScript(`return [${list(others).map(answer)}];`, null));
        // Count windows: those that the page opened, and a dialog for printing, cover the page in its film.
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

// An expression whose value is the script's result, or the error if it fails. Each script is an expression and a
// semicolon.
function answer({ content }) {
  const expression = content.trim().replace(/;$/, "");
  return `(() => { try { return { value: ${expression} }; } catch (error) { return { error: String(error) }; } })()`;
}

// The results of all scripts, in the form of `categories`. `outcomes` are in the order of `list(categories)`.
function answers(categories, outcomes) {
  const results = Object.fromEntries(Object.keys(categories).map((category) => [category, {}]));
  list(categories).forEach(({ category, name }, place) => {
    const { value, error } = outcomes[place];
    if (error) console.log(`the script ${name} fails in the page: ${error}`);
    else if (value !== null && value !== undefined) results[category][name] = value;
  });
  return results;
}
