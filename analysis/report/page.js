"use strict";

// A cell's value for sorting: its number if it begins with one ("+8.7 %*", "1.2e-5"), else its text; "-" comes last.
function valueOf(cell) {
  const text = cell.textContent.trim();
  if (text === "-" || text === "") return null;
  const number = /^[-+]?(\d|\.\d)/.test(text) ? parseFloat(text) : NaN;
  return Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortBy(header) {
  const table = header.closest("table"), place = header.cellIndex;
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[place]), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return descending ? compare(b, a) : compare(a, b);
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

// Numbers are aligned right, long texts wrap.
function align(table) {
  for (const row of table.tBodies[0].rows) {
    for (const cell of row.cells) {
      if (typeof valueOf(cell) === "number") cell.className = "number";
      else if (cell.textContent.length > 48) cell.className = "wide";
    }
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("th button");
  if (button) sortBy(button.closest("th"));
});
document.querySelectorAll("table.sortable").forEach((table) => table.tBodies[0] && align(table));

const viewer = document.getElementById("viewer");
// Show a picture at its natural size. If it is larger than a narrow screen, the viewer scrolls.
function enlarge(picture) {
  const large = viewer.querySelector("img");
  large.src = picture.src;
  large.alt = picture.alt;
  viewer.showModal();
}
// Save a picture, which is in the page, as a file.
function save(url, name) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
document.querySelectorAll("figure").forEach((figure) => {
  const picture = figure.querySelector(".picture");
  if (!picture) return;
  picture.addEventListener("click", () => enlarge(picture));
  figure.querySelector(".enlarge").addEventListener("click", () => enlarge(picture));
  const keep = figure.querySelector(".keep");
  if (keep) keep.addEventListener("click", () => save(picture.src, keep.dataset.name));
});
viewer.addEventListener("click", () => viewer.close());

// Unfold everything for print.
const folded = [];
addEventListener("beforeprint", () => {
  folded.push(...document.querySelectorAll("details:not([open])"));
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of folded.splice(0)) part.open = false;
});

document.querySelectorAll("[data-films]").forEach((group) =>
  group.querySelector(".play").addEventListener("click", () => {
    for (const film of group.querySelectorAll("video")) {
      film.currentTime = 0;
      film.play();
    }
  }),
);

function explore() {
  const data = JSON.parse(document.getElementById("comparisons-data").textContent);
  const form = document.getElementById("explorer"), table = document.getElementById("table-explorer");
  const axes = { pair: data.pairs, network: data.networks, metric: data.metrics };
  for (const [name, values] of Object.entries(axes)) {
    values.forEach((text, place) => form.elements[name].add(new Option(text, place)));
  }
  form.elements.metric.value = Math.max(0, data.metrics.findIndex((text) => text.startsWith("SI ")));
  const head = table.tHead.insertRow();
  for (const text of ["site", ...data.headings]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    const header = document.createElement("th");
    header.scope = "col";
    header.append(button);
    head.append(header);
  }
  const show = (value, place) => {
    if (value === null) return "-";
    if (!data.shares.includes(place)) return String(value);
    const percent = (100 * value).toFixed(1).replace(/^-(?=0\.0$)/, "");
    return (percent.startsWith("-") ? "" : "+") + percent + " %";
  };
  const fill = () => {
    const [pair, network, metric] = ["pair", "network", "metric"].map((name) => Number(form.elements[name].value));
    const rows = data.rows.filter((row) => row[0] === pair && row[1] === network && row[2] === metric);
    table.tBodies[0].replaceChildren(
      ...rows.map((row) => {
        const line = document.createElement("tr");
        line.insertCell().textContent = data.sites[row[3]];
        row.slice(4).forEach((value, place) => { line.insertCell().textContent = show(value, place); });
        return line;
      }),
    );
    for (const header of head.cells) header.removeAttribute("aria-sort");
    align(table);
  };
  form.addEventListener("change", fill);
  fill();
}
// The page of a study has no comparisons of sites.
if (document.getElementById("comparisons-data")) explore();
