// What all pages have in common: how htmx puts in what has changed, forms that are sent once, and a console that is gone.

const NO_ANSWER = "The console does not answer. This page tries again; if the console has ended, start it again with devhost ui.";
const NOT_LET_IN = "The console was started again. Open the address that it printed: it holds the token that lets you in.";
const REFUSED = 403;
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const isGroup = (row) => row.querySelector(":scope > .children") !== null;

// What only the person changes: what is open, ticked or typed.
const TYPED = "textarea, select, input:not([type=hidden], [type=checkbox], [type=radio])";
const isKept = (name, element) => name === "open" || name === "checked" || (name === "value" && element.matches(TYPED));
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, element) => !isKept(name, element);
Idiomorph.defaults.callbacks.beforeNodeMorphed = (old, fresh) => {
  if (fresh.dataset?.same !== undefined) return false; // nothing in it has changed
  if (old.matches?.(".inside[hx-get]") && !fresh.hasChildNodes()) {
    if (old.hasChildNodes()) queueMicrotask(() => htmx.trigger(old, "reload")); // what it holds may have changed
    return false;
  }
  if (old.matches?.("details") && !isGroup(old) && isGroup(fresh) && fresh.open) old.open = true;
};

// After a change, the focus is where it was, or on what stood before it if that is gone.
const { morph } = Idiomorph;
Idiomorph.morph = (place, ...rest) => {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const stops = focused ? [...place.querySelectorAll(FOCUSABLE)] : [];
  const made = morph(place, ...rest);
  if (focused && document.activeElement !== focused) {
    const at = stops.indexOf(focused);
    const shown = (stop) => stop.isConnected && stop.checkVisibility();
    const next = shown(focused) ? focused : stops.slice(0, at).findLast(shown) ?? stops.slice(at).find(shown);
    next?.focus({ preventScroll: true });
  }
  document.dispatchEvent(new CustomEvent("page:changed", { detail: { place } }));
  return made;
};

// What a row holds is asked for when it is opened for the first time, and again when the row has changed.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, requestConfig } = event.detail;
  if (!elt.matches(".inside") || requestConfig.triggeringEvent?.type === "reload") return;
  if (elt.hasChildNodes() || !elt.parentElement.open) event.preventDefault();
});

// Buttons that need so many ticked boxes: [data-needs] is "2" or "1+".
function prepare() {
  const ticked = document.querySelectorAll("#found input[name=run]:checked").length;
  for (const button of document.querySelectorAll("[data-needs]")) button.disabled = button.dataset.needs === "2" ? ticked !== 2 : ticked === 0;
}
for (const event of ["page:changed", "change"]) document.addEventListener(event, prepare);
prepare();

function say(sentence) {
  const place = document.getElementById("offline");
  if (place.textContent !== sentence) place.textContent = sentence;
  place.hidden = !sentence;
}
document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => say(xhr.status === REFUSED ? NOT_LET_IN : ""));
document.addEventListener("htmx:sseOpen", () => say(""));
for (const event of ["htmx:sendError", "htmx:sseError"]) document.addEventListener(event, () => say(NO_ANSWER));

// A browser opens six connections to a host: a hidden page closes its own.
const sources = new Set();
document.addEventListener("htmx:sseOpen", ({ detail: { source } }) => sources.add(source));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    for (const source of sources) source.close();
    sources.clear();
    return;
  }
  for (const place of document.querySelectorAll("[sse-connect]")) {
    place.dataset.shown = Date.now(); // an element with another attribute is connected again
    htmx.process(place);
  }
  const list = document.getElementById("look");
  if (list) htmx.trigger(list, "now");
});

// Enter sends a question, with the button that [data-enter] names; Shift+Enter begins a line.
document.addEventListener("keydown", (event) => {
  const { target } = event;
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !target.dataset?.enter) return;
  event.preventDefault();
  const button = target.form.querySelector(`button[value="${target.dataset.enter}"]:not([aria-hidden])`);
  if (button && (target.value.trim() || target.required)) button.click();
});

// How long something has been under way: [data-since] is when it began, in seconds since 1970.
function count() {
  for (const place of document.querySelectorAll("[data-since]")) {
    const seconds = `${Math.max(0, Math.round(Date.now() / 1000 - place.dataset.since))} s`;
    if (place.textContent !== seconds) place.textContent = seconds;
  }
}
setInterval(count, 500);
document.addEventListener("page:changed", count);
count();

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
