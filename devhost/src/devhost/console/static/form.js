// The forms of a run. One takes its own place again when another plugin, strategy or scenario is chosen, and when a
// field is reset. The entry of the browser's history keeps what the form holds, so that Back from
// the run leads to it.
const theForm = () => document.querySelector("form.run-form");
const held = () => new URLSearchParams(new FormData(theForm())).toString();
const keep = () => theForm() && history.replaceState({ held: held() }, "");
let sent = ""; // what the form held when it was sent

const isWhole = ({ target }) => target === theForm();
document.addEventListener("htmx:beforeRequest", ({ detail }) => isWhole(detail) && (sent = held()));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!isWhole(detail) || held() === sent) return;
  detail.shouldSwap = false; // the person has typed on meanwhile
  htmx.trigger(document.getElementById("source"), "change");
});
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  const done = detail.requestConfig?.parameters.do ?? "";
  if (done.startsWith("reset ")) document.getElementById(`p.${done.slice("reset ".length)}`)?.focus();
  keep();
});
document.addEventListener("change", keep);
document.addEventListener("submit", keep);

// A link to the page that is open begins with a new form, although its entry of the history stays.
const isAgain = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
const before = isAgain && theForm() ? history.state?.held : null;
if (before) {
  const values = Object.fromEntries([...new URLSearchParams(before), ["do", "load"]]);
  htmx.ajax("POST", theForm().action, { source: theForm(), target: theForm(), select: "form.run-form", swap: "outerHTML", values });
} else keep(); // the page of a mistake, too, which the browser would else have to send again
