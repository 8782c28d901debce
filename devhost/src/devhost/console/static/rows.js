// The page of a run: it folds and unfolds rows, finds the first that failed, and follows the conversation to its end.

const tools = document.getElementById("row-tools");
const runs = () => document.getElementById("runs");

// Groups, calls, nodes of a flow, and the runs of its agents.
function fold(open) {
  for (const row of runs().querySelectorAll(".span, .own, .agent-run")) row.open = open;
}

// The innermost: a group that failed holds what failed in it.
function goToFirstError() {
  const row = runs().querySelector(".span.error:not(:has(.span.error))");
  if (!row) return;
  for (let around = row; around; around = around.parentElement.closest("details")) around.open = true;
  const line = row.querySelector(":scope > summary");
  line.scrollIntoView({ block: "center" });
  line.focus();
}

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
