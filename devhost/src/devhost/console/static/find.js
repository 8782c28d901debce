// Searches the rows of a run on the server, marks those that fit, and goes from one to the next with Enter.
import { reveal, summaryOf } from "./rows.js";

const runs = document.getElementById("runs");
const form = document.getElementById("find");
const words = document.getElementById("find-words");
const found = document.getElementById("found");
const AFTER = 200; // ms without a key

let names = [];
let wordsOfNames = "";
let at = -1;
let timer = 0;
let number = 0; // of a question, and of the last one that was answered: an older answer comes too late
let latest = 0;

async function find() {
  const asked = words.value;
  const mine = ++number;
  const answer = await fetch(`${runs.dataset.search}?${new URLSearchParams({ words: asked })}`).catch(() => null);
  const found = answer?.ok ? await answer.json() : null;
  if (!found || asked !== words.value || mine < latest) return;
  latest = mine;
  const before = names[at];
  names = found;
  wordsOfNames = asked;
  at = names.indexOf(before);
  mark();
}

function mark() {
  for (const row of runs.querySelectorAll(".hit")) row.classList.remove("hit", "current");
  for (const name of names) document.getElementById(name)?.classList.add("hit");
  document.getElementById(names[at])?.classList.add("current");
  found.textContent = !words.value.trim() ? "" : at < 0 ? `${names.length} ${names.length === 1 ? "row" : "rows"}` : `${at + 1} of ${names.length}`;
}

// Who is faster than the search goes to the first row of what was typed last.
async function step(by) {
  if (wordsOfNames !== words.value) {
    clearTimeout(timer);
    await find();
  }
  if (!names.length) return;
  at = at < 0 && by < 0 ? names.length - 1 : (at + by + names.length) % names.length;
  mark();
  const row = document.getElementById(names[at]);
  if (row) reveal(row);
}

words.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, AFTER);
});
words.addEventListener("keydown", (event) => {
  const row = document.getElementById(names[at]);
  if (event.key === "Escape" && row) summaryOf(row).focus();
  if (event.key !== "Enter") return;
  event.preventDefault();
  step(event.shiftKey ? -1 : 1);
});
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("page:changed", () => {
  if (!words.value.trim()) return;
  mark(); // a row that has changed has lost its mark
  find();
});
