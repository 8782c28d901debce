// A run's page, live: puts in what the server says has changed, and loads what a row holds when it is opened.
import { ask } from "./ask.js";
import { morph, morphChildren, parsed } from "./morph.js";

const runs = document.getElementById("runs");
const asked = new WeakMap(); // how often what a row holds was asked for
let stream = null;

function listen() {
  if (stream || document.hidden) return;
  stream = new EventSource(runs.dataset.events);
  stream.addEventListener("section", event => change(JSON.parse(event.data)));
  stream.addEventListener("head", event => morphChildren(document.getElementById("run-head"), parsed(JSON.parse(event.data).html)));
  stream.addEventListener("problem", event => say("problem", JSON.parse(event.data).sentence));
  stream.addEventListener("open", () => say("offline", ""));
  stream.addEventListener("error", () => say("offline", "The console does not answer. This page tries again; if the console has ended, start it again with devhost ui."));
}

// A browser opens six connections to a host: a page that nobody sees gives its own back.
function rest() {
  stream?.close();
  stream = null;
}

function say(id, sentence) {
  const place = document.getElementById(id);
  place.textContent = sentence;
  place.hidden = !sentence;
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
  const row = inside.closest(".span");
  const number = (asked.get(inside) ?? 0) + 1;
  asked.set(inside, number);
  inside.dataset.loaded = "";
  const answer = await ask(runs.dataset.rows + row.id);
  const html = answer?.ok ? await answer.text() : null;
  if (number !== asked.get(inside)) return; // a later answer is on its way, or was first
  if (html !== null) morphChildren(inside, parsed(html));
  else if (!inside.hasChildNodes()) delete inside.dataset.loaded; // to be asked for when it is opened again
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
