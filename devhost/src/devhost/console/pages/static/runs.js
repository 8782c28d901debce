// The list of runs: it searches as one types, and follows the folder as runs begin and end.
import { refresh } from "./ask.js";

const EVERY = 2000; // milliseconds between two looks at the folder
const WHILE_TYPING = 150;
const found = document.getElementById("found");
const field = document.getElementById("search-field");
let typing = 0;

const boxes = () => [...found.querySelectorAll("input[name=run]")];

function prepare() {
  const ticked = boxes().filter((box) => box.checked).length;
  for (const button of found.querySelectorAll("[data-needs]")) {
    button.disabled = button.dataset.needs === "2" ? ticked !== 2 : ticked === 0;
  }
}

async function look() {
  if (await refresh(found, `/list${location.search}`)) prepare();
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
