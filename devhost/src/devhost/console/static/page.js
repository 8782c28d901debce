// What all pages have in common: how htmx puts in what has changed, forms that are sent once, and a console that is gone.

const NO_ANSWER = "The console does not answer. This page tries again; if the console has ended, start it again with devhost ui.";
const NOT_LET_IN = "The console was started again. Open the address that it printed: it holds the token that lets you in.";
const OUTDATED = "This page cannot be kept up to date: reload it to see why.";

// What only the person changes: what is open, ticked or typed.
const TYPED = "textarea, select, input:not([type=hidden], [type=checkbox], [type=radio])";
const isKept = (name, element) => ["open", "checked", "selected"].includes(name) || (name === "value" && element.matches(TYPED));
const isGroup = (row) => row.querySelector(":scope > .children") !== null;
const growing = new WeakSet(); // rows that had not ended before the change
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, element) => !isKept(name, element);
Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => {
  if (old.id === "row-tools") return false; // it is the same in every version, but for what was found
  if (old.matches?.(".inside[hx-get]") && !fresh.hasChildNodes()) {
    // What a row holds stays; of one that had not ended it may have changed.
    if (old.hasChildNodes() && growing.has(old.closest(".span"))) queueMicrotask(() => htmx.trigger(old, "reload"));
    return false;
  }
  if (old.matches?.(".span")) growing[old.matches(".open-end") ? "add" : "delete"](old);
  if (old.matches?.("details") && !isGroup(old) && isGroup(fresh) && fresh.open) old.open = true;
};

// What a row holds is asked for when it is opened for the first time, and again when the row has changed.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, requestConfig } = event.detail;
  if (!elt.matches(".inside") || requestConfig.triggeringEvent?.type === "reload") return;
  if (elt.hasChildNodes() || !elt.parentElement.open) event.preventDefault();
});

// Buttons that need so many ticked boxes: [data-needs] is "2" or "1+".
function prepare() {
  const ticked = document.querySelectorAll("#live input[name=run]:checked").length;
  for (const button of document.querySelectorAll("[data-needs]")) button.disabled = button.dataset.needs === "2" ? ticked !== 2 : ticked === 0;
}

// How long something has been under way: [data-since] is when it began, in seconds since 1970.
function count() {
  for (const place of document.querySelectorAll("[data-since]")) {
    const seconds = `${Math.max(0, Math.round(Date.now() / 1000 - place.dataset.since))} s`;
    if (place.textContent !== seconds) place.textContent = seconds;
  }
}
setInterval(count, 500);
document.addEventListener("change", prepare);
for (const each of [prepare, count]) {
  document.addEventListener("htmx:afterSwap", each);
  each();
}

function say(sentence) {
  const place = document.getElementById("offline");
  if (place.textContent !== sentence) place.textContent = sentence;
  place.hidden = !sentence;
}
document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => {
  if (xhr.status) say(xhr.status === 403 ? NOT_LET_IN : xhr.status >= 400 ? OUTDATED : "");
});
document.addEventListener("htmx:sendError", () => say(NO_ANSWER));

// Enter sends a question, with the button that [data-enter] names; Shift+Enter begins a line.
document.addEventListener("keydown", (event) => {
  const { target } = event;
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !target.dataset?.enter) return;
  event.preventDefault();
  target.form.querySelector(`button[value="${target.dataset.enter}"]`).click();
});

// A search field over a list, a select or rows with [data-entry]: [data-filters] is its id. What has its words stays.
const offered = new WeakMap(); // the options of a select, each with its group: a browser may show hidden ones
function hasWords(text, words) {
  const said = text.toLowerCase();
  return words.every((word) => said.includes(word));
}
function offer(select, words) {
  if (!offered.has(select)) offered.set(select, [...select.options].map((option) => [option, option.parentElement]));
  const chosen = select.selectedOptions[0];
  for (const [option, group] of offered.get(select)) {
    if (option === chosen || hasWords(`${group.label} ${option.label}`, words)) group.append(option);
    else option.remove();
  }
  for (const group of new Set(offered.get(select).map(([, group]) => group))) group.hidden = !group.children.length;
  return offered.get(select).find(([option]) => option.isConnected && option !== chosen)?.[0];
}
document.addEventListener("input", ({ target }) => {
  if (!target.dataset?.filters) return;
  const list = document.getElementById(target.dataset.filters);
  const words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (list.matches("select")) return offer(list, words);
  for (const row of list.querySelectorAll("[data-entry]")) row.hidden = !hasWords(row.textContent, words);
  for (const group of list.querySelectorAll("[data-group]")) group.hidden = !group.querySelector("[data-entry]:not([hidden])");
});
document.addEventListener("keydown", (event) => {
  const { target } = event;
  if (event.key !== "Enter" || !target.dataset?.filters) return;
  event.preventDefault(); // it would send the form
  const list = document.getElementById(target.dataset.filters);
  if (!list.matches("select")) return list.querySelector("[data-entry]:not([hidden]) a")?.focus();
  const first = target.value.trim() && offer(list, target.value.toLowerCase().split(/\s+/).filter(Boolean));
  if (!first) return list.focus();
  list.value = first.value;
  list.dispatchEvent(new Event("change", { bubbles: true }));
});

// Another scenario, plugin or strategy has another form.
document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-loads]")) return;
  const chosen = [...target.form.querySelectorAll("[data-loads]")].map((each) => [each.name, each.value]);
  location.assign(`${target.form.action}?${new URLSearchParams(chosen)}`);
});

// A form is sent once: a double click on Start would start two runs. The page is left with the answer.
window.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.hasAttribute("data-sent")) event.preventDefault();
  else form.setAttribute("data-sent", ""); // a disabled button would not be sent with it
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) form.removeAttribute("data-sent"); // Back
});
