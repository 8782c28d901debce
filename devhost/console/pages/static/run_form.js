// Loads the form again when another plugin, strategy or scenario is chosen; the server keeps what was typed.
import { ask } from "./ask.js";

let last = new AbortController();

const held = (form) => new URLSearchParams(new FormData(form)).toString();

async function load(submitter) {
  last.abort();
  const { signal } = (last = new AbortController());
  const form = document.getElementById("new");
  const sent = held(form);
  const body = new URLSearchParams(sent);
  body.set("do", submitter?.value ?? "load");
  form.setAttribute("aria-busy", "true");
  const answer = await ask(form.action, { method: "POST", body, signal });
  if (signal.aborted) return;
  if (!answer) return form.removeAttribute("aria-busy");
  const page = new DOMParser().parseFromString(answer.text, "text/html");
  const now = page.getElementById("new");
  if (!now) return form.removeAttribute("aria-busy");
  if (held(form) !== sent) return load(); // the person has typed on meanwhile
  const focused = document.activeElement;
  form.replaceWith(now);
  focus(focused);
}

// The same field of the new form, with the caret where it was.
function focus({ id, selectionStart: start, selectionEnd: end }) {
  const field = id ? document.getElementById(id) : null;
  field?.focus();
  if (typeof start === "number") field?.setSelectionRange(start, end);
}

document.addEventListener("change", (event) => {
  if (event.target.matches("#new [data-loads]")) load();
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "new" || (event.submitter?.value ?? "start") === "start") return;
  event.preventDefault();
  load(event.submitter);
});
