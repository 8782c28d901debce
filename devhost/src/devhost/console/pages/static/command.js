// Keeps the command below a form that of what stands in the form: <details data-command="ADDRESS"> within it.
import { askAbout } from "./ask.js";

const AFTER = 300; // ms without a key
let timer = 0;

async function show(form) {
  const place = form.querySelector("[data-command]");
  const answer = await askAbout(place, place.dataset.command, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!answer) return;
  place.querySelector("pre").textContent = answer.text;
  place.hidden = !answer.text;
}

document.addEventListener("input", ({ target }) => {
  if (!target.form?.querySelector("[data-command]")) return;
  clearTimeout(timer);
  timer = setTimeout(show, AFTER, target.form);
});
