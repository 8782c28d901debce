// Keeps #waiting true: fetches it when the run has changed, and sends its form without leaving the page.
import { ask } from "./ask.js";

const EVERY = 1500; // ms, until the conversation is over: its process may end at any time
const GOES_ON = ["running", "question", "approval", "elsewhere"];
const SOON = 300; // ms after a change

let asked = 0;
let soon = null;

async function reload() {
  const number = ++asked;
  const before = document.getElementById("waiting");
  const answer = await ask(before.dataset.address);
  if (!answer?.ok || number !== asked) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const now = page.getElementById("waiting");
  const old = document.getElementById("waiting");
  if (now.dataset.state === old.dataset.state && now.dataset.told === old.dataset.told && now.textContent === old.textContent) return;
  const within = old.contains(document.activeElement);
  old.replaceWith(now);
  if (within) (now.querySelector("textarea") ?? now.querySelector(".button, button"))?.focus();
}

async function send(event) {
  const form = event.target;
  if (!form.matches("#waiting form")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  const answer = await ask(form.action, { method: "POST", body });
  if (!answer?.ok) {
    const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
    const problem = page.querySelector(".problem-text")?.textContent;
    form.querySelector(".refused")?.remove();
    const words = Object.assign(document.createElement("p"), { className: "refused", textContent: problem ?? answer?.statusText ?? "The console does not answer." });
    words.setAttribute("role", "alert");
    form.append(words);
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
  await reload();
}

document.addEventListener("submit", send);
// A run changes many times a second while an answer streams.
document.addEventListener("run:changed", () => {
  soon ??= setTimeout(() => {
    soon = null;
    reload();
  }, SOON);
});
setInterval(() => {
  if (!document.hidden && GOES_ON.includes(document.getElementById("waiting")?.dataset.state)) reload();
}, EVERY);
