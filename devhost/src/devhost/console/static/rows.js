// Folds and unfolds the rows of a run, and finds the first that failed. Arrow keys work on the row that has the focus.
import { lettersAreKeys } from "./keys.js";

const runs = document.getElementById("runs");
const tools = document.getElementById("row-tools");
const firstErrorButton = tools.querySelector("[data-first-error]");

export const summaryOf = (row) => row.querySelector(":scope > summary");

// Opens what is around a row, so that it can be seen.
export function reveal(row, block = "nearest") {
  for (let around = row.parentElement?.closest("details"); around; around = around.parentElement?.closest("details")) around.open = true;
  summaryOf(row).scrollIntoView({ block });
}

// Groups, calls, nodes of a flow, and the runs of its agents.
const folds = () => runs.querySelectorAll(".span, .own, .agent-run");

// The innermost: a group that failed holds what failed in it.
const firstError = () => runs.querySelector(".span.error:not(:has(.span.error))");

function goToFirstError() {
  const row = firstError();
  if (!row) return;
  reveal(row, "center");
  row.open = true;
  summaryOf(row).focus();
}

function show() {
  tools.hidden = !runs.querySelector(".span");
  firstErrorButton.hidden = !firstError();
}

tools.querySelector("[data-fold]").addEventListener("click", () => {
  for (const fold of folds()) fold.open = false;
});
tools.querySelector("[data-unfold]").addEventListener("click", () => {
  for (const fold of folds()) fold.open = true;
});
firstErrorButton.addEventListener("click", goToFirstError);
document.addEventListener("page:changed", show);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const row = event.target.closest?.("summary")?.parentElement;
  if (event.key === "ArrowRight" && row) {
    row.open = true;
    summaryOf(row).scrollIntoView({ block: "nearest" }); // an opened row shows all of its words
  }
  else if (event.key === "ArrowLeft" && row?.open) row.open = false;
  else if (event.key === "ArrowLeft" && row) row.parentElement.closest(".span")?.querySelector("summary").focus();
  else if (event.key === "e" && lettersAreKeys(event)) goToFirstError();
  else return;
  event.preventDefault();
});
show();
