// The form of a new run, and of a run again. It is loaded again when another plugin, strategy or scenario is chosen, when
// it is checked and when a field is reset; the server keeps what was typed. The entry of the browser's history keeps what
// the form holds, so that Back from the run leads to it.
import { ask } from "./ask.js";

let last = new AbortController();

const theForm = () => document.querySelector("form.run-form");
const held = (form) => new URLSearchParams(new FormData(form)).toString();
const keep = () => history.replaceState({ held: held(theForm()) }, "");

async function load(sent = held(theForm()), button = null) {
  last.abort();
  const { signal } = (last = new AbortController());
  const form = theForm();
  const before = held(form);
  const body = new URLSearchParams(sent);
  body.set("do", button?.value ?? "load");
  form.setAttribute("aria-busy", "true");
  const answer = await ask(form.action, { method: "POST", body, signal });
  if (signal.aborted) return;
  const now = answer && new DOMParser().parseFromString(answer.text, "text/html").querySelector("form.run-form");
  if (!now) return form.removeAttribute("aria-busy");
  if (held(form) !== before) return load(); // the person has typed on meanwhile
  const focused = document.activeElement;
  form.replaceWith(now);
  if (button?.value.startsWith("reset ")) document.getElementById(`p.${button.value.slice("reset ".length)}`)?.focus();
  else if (button && now.querySelector("[autofocus]")) now.querySelector("[autofocus]").focus();
  else focus(focused);
  keep();
}

// The same field of the new form, with the caret where it was.
function focus({ id, selectionStart: start, selectionEnd: end }) {
  const field = id ? document.getElementById(id) : null;
  field?.focus();
  if (typeof start === "number") field?.setSelectionRange(start, end);
}

document.addEventListener("input", ({ target }) => target.form === theForm() && document.getElementById("fits")?.remove());
document.addEventListener("change", ({ target }) => {
  if (target.form !== theForm()) return;
  keep();
  if (target.matches("[data-loads]")) load();
});
document.addEventListener("submit", (event) => {
  if (event.target !== theForm()) return;
  keep();
  if ((event.submitter?.value ?? "start") === "start") return;
  event.preventDefault();
  load(undefined, event.submitter);
});
// A link to the page that is open begins with a new form, although its entry of the history stays.
const isAgain = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
if (isAgain && history.state?.held) load(history.state.held);
else keep(); // the page of a mistake, too, which the browser would else have to send again
