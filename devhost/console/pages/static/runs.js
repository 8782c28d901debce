// The list of runs: it searches as one types, and follows the folder as runs begin and end.

const EVERY = 2000; // milliseconds between two looks at the folder
const WHILE_TYPING = 150;
const found = document.getElementById("found");
const field = document.getElementById("search-field");
let shown = null; // what the server sent last, so that an unchanged list is left alone
let typing = 0;
let asked = 0;

const boxes = () => [...found.querySelectorAll("input[name=run]")];

function prepare() {
  const ticked = boxes().filter((box) => box.checked).length;
  for (const button of found.querySelectorAll("[data-needs]")) {
    button.disabled = button.dataset.needs === "2" ? ticked !== 2 : ticked === 0;
  }
}

// What a person has ticked, and where the keyboard is, stays.
function show(html) {
  if (html === shown) return;
  shown = html;
  const ticked = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
  const active = found.contains(document.activeElement) ? document.activeElement : null;
  const place = active && { href: active.getAttribute("href"), value: active.getAttribute("value") };
  const folded = [...found.querySelectorAll("details")].map((each) => each.open);
  found.innerHTML = html; // HTML that the server rendered
  for (const box of boxes()) box.checked = ticked.has(box.value);
  found.querySelectorAll("details").forEach((each, at) => (each.open = folded[at] ?? false));
  if (place) {
    const same = (each) =>
      each.getAttribute("href") === place.href && each.getAttribute("value") === place.value;
    [...found.querySelectorAll("a, button, input, summary")].find(same)?.focus({ preventScroll: true });
  }
  prepare();
}

async function look() {
  const mine = ++asked;
  try {
    const answer = await fetch(`/list${location.search}`);
    const html = await answer.text();
    if (answer.ok && mine === asked) show(html);
  } catch {
    // The console has ended, or starts again; the next look tells.
  }
}

async function follow() {
  if (document.visibilityState === "visible") await look();
  setTimeout(follow, EVERY);
}

field.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const address = new URL(location.href);
    address.searchParams.delete("page");
    if (field.value.trim()) address.searchParams.set("search", field.value);
    else address.searchParams.delete("search");
    history.replaceState(null, "", address);
    look();
  }, WHILE_TYPING);
});
found.addEventListener("change", prepare);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && look());
prepare();
follow();
