// The page of a run: it folds and unfolds rows, finds the first that failed, and follows the conversation to its end.

const tools = document.getElementById("row-tools");
const runs = () => document.getElementById("runs");

// Groups, calls, nodes of a flow, and the runs of its agents.
function fold(open) {
  for (const row of runs().querySelectorAll(".span, .own, .agent-run")) row.open = open;
}

// Opens a row and what is around it; its line.
function reveal(row) {
  for (let around = row; around; around = around.parentElement.closest("details")) around.open = true;
  const line = row.querySelector(":scope > summary");
  line.scrollIntoView({ block: "center" });
  return line;
}

// The innermost: a group that failed holds what failed in it.
function goToFirstError() {
  const row = runs().querySelector(".span.error:not(:has(.span.error))");
  if (row) reveal(row).focus();
}

// A node of the flow's drawing leads to its row, and opens it.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".graph a");
  const row = link && document.getElementById(link.getAttribute("href").slice(1));
  if (!row) return;
  event.preventDefault();
  reveal(row).focus();
});

// Enter goes to the next row that holds the words. The console looks for them, because the page has only opened rows.
const find = document.getElementById("find");
let last = ""; // the id of the row that was found last
find.addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch(`${find.action}?${new URLSearchParams(new FormData(find))}`).catch(() => null);
  if (!answer?.ok) return;
  const names = new Set(await answer.json());
  const rows = [...runs().querySelectorAll(".span")].filter((row) => names.has(row.id));
  const at = rows.length && (rows.findIndex((row) => row.id === last) + 1) % rows.length;
  document.getElementById("found").textContent = rows.length ? `row ${at + 1} of ${rows.length}` : "in no row";
  document.getElementById(last)?.classList.remove("hit");
  last = rows[at]?.id ?? "";
  if (last) reveal(rows[at]).parentElement.classList.add("hit");
  unfoldHit();
});

// Of the row that was found, opens what holds the words, such as the prompt; its content may come later.
function unfoldHit() {
  const words = find.elements.words.value.toLowerCase().split(/\s+/);
  for (const fold of runs().querySelectorAll(".hit > .inside details")) {
    if (words.every((word) => fold.textContent.toLowerCase().includes(word))) fold.open = true;
  }
}
document.addEventListener("htmx:afterSwap", ({ target }) => target.matches(".hit > .inside") && unfoldHit());

// A button that copies the text on which the pointer or the focus is.
const copy = Object.assign(document.createElement("button"), { type: "button", className: "small copy" });
function offer({ target }) {
  const text = target.closest?.("#runs pre, #said .answer");
  if (!text || text.nextElementSibling === copy) return;
  copy.textContent = "Copy";
  copy.onclick = async () => {
    await navigator.clipboard.writeText(text.innerText);
    copy.textContent = "Copied";
  };
  text.after(copy);
  const [place, around] = [text, copy.offsetParent].map((each) => each.getBoundingClientRect());
  copy.style.top = `${place.top - around.top + copy.offsetParent.scrollTop + 4}px`;
  copy.style.left = `${place.right - around.left - 4}px`;
}
for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, offer);

const ACTIONS = { fold: () => fold(false), unfold: () => fold(true), firstError: goToFirstError };
tools.addEventListener("click", ({ target }) => {
  for (const name of Object.keys(target.dataset)) ACTIONS[name]?.();
});

// The last question is in sight at both sides, and a field for the next one gets the focus that the last one had.
const said = document.getElementById("said");
const turns = () => said.querySelectorAll(".turn-said").length;
let shown = turns();
let atEnd = true;
said.scrollTop = said.querySelector(".turn-said:last-child")?.offsetTop ?? 0;
said.addEventListener("scroll", () => (atEnd = said.scrollTop + said.clientHeight >= said.scrollHeight - 40));
let field = document.querySelector("#waiting textarea");
document.addEventListener("htmx:afterSwap", () => {
  if (atEnd) said.scrollTop = said.scrollHeight;
  if (turns() > shown) runs().querySelector("section.run:last-child")?.scrollIntoView({ behavior: "smooth" });
  shown = turns();
  const next = document.querySelector("#waiting textarea");
  if (next && next !== field && document.activeElement === document.body) next.focus({ preventScroll: true });
  field = next;
});
