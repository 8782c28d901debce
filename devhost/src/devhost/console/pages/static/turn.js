// Brings the turn into view that answers what a person has just sent, unless they have moved on the page since.
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"];
let awaited = 0; // the number of the turn; 0 for none

function show() {
  const section = awaited ? document.getElementById(`run-${awaited}`) : null;
  if (!section) return;
  awaited = 0;
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  section.scrollIntoView({ behavior: isCalm ? "instant" : "smooth" });
}

document.addEventListener("turn:sent", ({ detail }) => {
  awaited = detail.turn;
  show();
});
document.addEventListener("run:changed", show);
for (const move of MOVES) document.addEventListener(move, () => (awaited = 0), { passive: true });
