// What a run waits for: drafts outlive what happens elsewhere, and what was sent brings its turn into view.
const TURNS = ["approve", "reject", "say"]; // what begins one
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"];
const waiting = document.getElementById("conversation");
const said = document.getElementById("said");
const isAtEnd = () => said.scrollTop + said.clientHeight >= said.scrollHeight - 40;
const drafts = {}; // what is typed and not sent yet, by the state for which it is meant
let awaited = 0; // the number of the turn that answers what was sent; 0 for none

const card = () => waiting.querySelector(".waiting");
const field = () => waiting.querySelector("textarea");
let state = card().dataset.state;
let within = false;

const last = [...said.querySelectorAll(".turn-said")].at(-1);
if (last) said.scrollTop = last.offsetTop - 16; // the last question, with what came of it
let wasAtEnd = isAtEnd(); // what comes is then scrolled into sight
said.addEventListener("scroll", () => (wasAtEnd = isAtEnd()));
waiting.addEventListener("input", (event) => (drafts[state] = event.target.value));
document.addEventListener("focusin", ({ target }) => (within = waiting.contains(target)));
document.addEventListener("page:changed", ({ detail }) => {
  if (detail.place === waiting && card().dataset.state !== state) {
    state = card().dataset.state;
    if (field()) field().value = drafts[state] ?? field().defaultValue;
    // Not a button: in the place of Approve and Ask now stands another one.
    if (within) (field() ?? waiting.querySelector(".status")).focus({ preventScroll: true });
  }
  if (detail.place === said && wasAtEnd) said.scrollTop = said.scrollHeight;
  const section = awaited ? document.getElementById(`turn-${awaited}`) : null;
  if (!section) return;
  awaited = 0;
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  section.scrollIntoView({ behavior: isCalm ? "instant" : "smooth" });
});
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (detail.elt.matches(".steer")) detail.elt.dataset.turn = Number(card().dataset.told) + 1;
});
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { elt, parameters } = detail.requestConfig;
  if (!elt.matches(".steer") || detail.serverResponse.includes('class="refused"')) return;
  delete drafts[state]; // it is sent
  if (field()) field().value = "";
  if (TURNS.includes(parameters.do)) awaited = Number(elt.dataset.turn);
});
for (const move of MOVES) document.addEventListener(move, () => (awaited = 0), { passive: true });
// The second click of a double click would press the button that stands there next, such as Stop after Approve.
waiting.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("button")) event.preventDefault();
});
