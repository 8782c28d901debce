// The keys of all pages: n, r, /, j, k and ?. A person can turn them off (WCAG 2.1.4), and the browser remembers it.
// What is marked: [data-search] is where / goes; [data-row] are the rows of j and k. A row that is itself a link, a
// button or a <summary> gets the focus, else the first such element in it.

const OFF = "devhost-keys-off";
const FOCUSABLE = "a[href], button, summary";
const dialog = document.getElementById("keys");
const opener = document.querySelector("[data-keys]");
const switched = document.getElementById("keys-on");

const rows = () =>
  [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
const target = (row) => (row.matches(FOCUSABLE) ? row : row.querySelector(FOCUSABLE));

function move(step) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findLastIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
  target(all[next])?.focus();
  all[next].scrollIntoView({ block: "nearest" });
}

function search() {
  const field = document.querySelector("[data-search]");
  field?.focus();
  field?.select?.();
}

const KEYS = {
  n: () => location.assign("/new"),
  r: () => location.assign("/"),
  "/": search,
  j: () => move(1),
  k: () => move(-1),
  "?": () => dialog.showModal(),
};

function isTyping(element) {
  return element.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
}

// Whether a letter is a shortcut now, and not something that is typed.
export function lettersAreKeys(event) {
  return switched.checked && !dialog.open && !isTyping(event.target);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches?.("[data-search]")) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!lettersAreKeys(event) || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

switched.checked = localStorage.getItem(OFF) === null;
switched.addEventListener("change", () => {
  if (switched.checked) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "yes");
});
opener.addEventListener("click", () => dialog.showModal());
opener.hidden = false;
