// Loads the form again when another plugin, strategy or scenario is chosen; the server keeps what was typed.
import { ask } from "./ask.js";

let asked = 0;

async function load(submitter) {
  const number = ++asked;
  const form = document.getElementById("new");
  const body = new URLSearchParams(new FormData(form));
  body.set("do", submitter?.value ?? "load");
  form.setAttribute("aria-busy", "true");
  const answer = await ask(form.action, { method: "POST", body });
  if (!answer) return form.removeAttribute("aria-busy");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (number !== asked) return;
  const now = page.getElementById("new");
  if (!now) return form.removeAttribute("aria-busy");
  const focused = document.activeElement?.id;
  form.replaceWith(now);
  if (focused) document.getElementById(focused)?.focus();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("#new [data-loads]")) load();
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "new" || (event.submitter?.value ?? "start") === "start") return;
  event.preventDefault();
  load(event.submitter);
});
