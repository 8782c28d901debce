// A run's page, live: puts in what the server says has changed, and loads what a row holds when it is opened.
import { refresh, say, sayOffline } from "./ask.js";
import { keepFocus, morph, morphChildren, parsed } from "./morph.js";

const runs = document.getElementById("runs");
let stream = null;

function listen() {
  if (stream || document.hidden) return;
  stream = new EventSource(runs.dataset.events);
  stream.addEventListener("trace", event => begin(JSON.parse(event.data)));
  stream.addEventListener("section", event => keepFocus(runs, () => change(JSON.parse(event.data))));
  const head = document.getElementById("run-head"); // a page of two runs has none
  if (head) stream.addEventListener("head", event => morphChildren(head, parsed(JSON.parse(event.data).html)));
  stream.addEventListener("problem", event => say("problem", JSON.parse(event.data).sentence));
  stream.addEventListener("open", () => sayOffline(false));
  stream.addEventListener("error", () => sayOffline(true));
}

// A browser opens six connections to a host: a page that nobody sees gives its own back.
function rest() {
  stream?.close();
  stream = null;
}

// Another run may have written over the trace that the page shows.
function begin({ began }) {
  if ((runs.dataset.trace ?? began) !== began) runs.replaceChildren();
  runs.dataset.trace = began;
}

function change({ run, scale, rows, pieces, frame }) {
  const name = `run-${run}`;
  if (!document.getElementById(name)) runs.append(...parsed(frame).children);
  document.getElementById("nothing-yet")?.remove();
  document.getElementById(`${name}-timeline`).setAttribute("style", scale);
  for (const part of ["facts", "answer", "axis", "results"]) {
    const html = pieces[`${name}-${part}`];
    if (html !== undefined) morphChildren(document.getElementById(`${name}-${part}`), parsed(html));
  }
  changeRows(document.getElementById(`${name}-rows`), rows, pieces);
  document.dispatchEvent(new CustomEvent("run:changed", { detail: { run } }));
}

function changeRows(holder, rows, pieces) {
  for (const [place, name] of rows.entries()) {
    const [fresh] = pieces[name] === undefined ? [] : parsed(pieces[name]).children;
    const row = document.getElementById(name) ?? fresh;
    if (holder.children[place] !== row) holder.insertBefore(row, holder.children[place] ?? null);
    if (!fresh || row === fresh) continue;
    morph(row, fresh);
    reload(row);
  }
  while (holder.children.length > rows.length) holder.lastElementChild.remove();
}

// What stands open in a row that has changed is loaded again.
function reload(row) {
  for (const inside of row.querySelectorAll(".inside[data-loaded]")) load(inside);
}

async function load(inside) {
  inside.dataset.loaded = "";
  const has = await refresh(inside, runs.dataset.rows + inside.closest(".span").id);
  if (!has && !inside.hasChildNodes()) delete inside.dataset.loaded; // to be asked for when it is opened again
}

// "toggle" does not bubble.
document.addEventListener(
  "toggle",
  ({ target }) => {
    const inside = target.open && runs.contains(target) ? target.querySelector(":scope > .inside:not([data-loaded])") : null;
    if (inside) load(inside);
  },
  true,
);
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
listen();
