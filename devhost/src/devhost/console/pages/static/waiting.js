// Keeps #waiting true: fetches it when the run has changed, and sends its form without leaving the page.
import { ask, askAbout } from "./ask.js";
import { keepFocus, morph, parsed } from "./morph.js";

const EVERY = 1500; // ms, until the conversation is over: its process may end at any time
const GOES_ON = ["running", "question", "approval", "elsewhere"];
const SOON = 300; // ms after a change
const TURNS = ["approve", "reject", "say"]; // what begins one

const waiting = document.getElementById("waiting");
const drafts = {}; // what is typed and not sent yet, by the state for which it is meant
let sending = false;
let soon = null;

const field = () => waiting.querySelector("textarea");

async function reload() {
  const answer = await askAbout(waiting, waiting.dataset.address);
  if (answer && !sending) show(parsed(answer.text).querySelector("#waiting"));
}

function show(now) {
  if (now.dataset.state === waiting.dataset.state) return keepFocus(waiting, () => morph(waiting, now));
  const within = waiting.contains(document.activeElement);
  waiting.querySelector("form")?.reset();
  morph(waiting, now);
  const draft = drafts[waiting.dataset.state];
  if (draft && field()) field().value = draft;
  // Not a button: in the place of Approve and Ask now stands another one.
  if (within) (field() ?? waiting.querySelector(".status")).focus({ preventScroll: true });
}

async function send(event) {
  const form = event.target;
  if (!form.matches("#waiting form")) return;
  event.preventDefault();
  if (sending) return;
  sending = true;
  form.setAttribute("data-sent", "");
  const turn = Number(waiting.dataset.told) + 1;
  const answer = await ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, event.submitter)) });
  sending = false;
  form.removeAttribute("data-sent");
  form.querySelector(".refused")?.remove();
  if (!answer?.ok) refuse(form, answer);
  else if (field()) {
    delete drafts[waiting.dataset.state]; // it is sent
    form.reset();
    if (TURNS.includes(event.submitter?.value)) document.dispatchEvent(new CustomEvent("turn:sent", { detail: { turn } }));
  }
  await reload();
}

function refuse(form, answer) {
  const problem = parsed(answer?.text ?? "").querySelector(".problem-text")?.textContent;
  const words = Object.assign(document.createElement("p"), { className: "refused", textContent: problem ?? answer?.statusText ?? "The console does not answer." });
  words.setAttribute("role", "alert");
  words.dataset.own = "";
  form.append(words);
}

document.addEventListener("submit", send);
// The second click of a double click would press the button that stands there next, such as Stop after Approve.
waiting.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("button")) event.preventDefault();
});
waiting.addEventListener("input", (event) => (drafts[waiting.dataset.state] = event.target.value));
// A run changes many times a second while an answer streams.
document.addEventListener("run:changed", () => {
  soon ??= setTimeout(() => {
    soon = null;
    reload();
  }, SOON);
});
setInterval(() => {
  if (!document.hidden && GOES_ON.includes(waiting.dataset.state)) reload();
}, EVERY);
