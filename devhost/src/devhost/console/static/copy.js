// Copies texts: a button over the text that the pointer is on or that has the focus, and the key c.
import { lettersAreKeys } from "./keys.js";

const page = document.querySelector(".talk-and-run");
const button = Object.assign(document.createElement("button"), { type: "button", className: "small copy", textContent: "Copy", hidden: true });
let source = null;

const sourceOf = (element) => element.closest?.("#runs pre, .talk .answer");

function show(element) {
  const text = sourceOf(element);
  if (!text) return;
  source = text;
  const { top, right } = text.getBoundingClientRect();
  button.style.top = `${top + window.scrollY + 4}px`;
  button.style.left = `${right + window.scrollX}px`;
  button.textContent = "Copy";
  button.hidden = false;
}

async function copy(text) {
  if (!text) return;
  await navigator.clipboard.writeText(text.innerText);
  show(text);
  button.textContent = "Copied";
}

page.addEventListener("pointerover", (event) => show(event.target));
page.addEventListener("focusin", (event) => show(event.target));
document.addEventListener("page:changed", () => (button.hidden = true)); // texts have moved
button.addEventListener("click", () => copy(source));
document.addEventListener("keydown", (event) => {
  if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || !lettersAreKeys(event)) return;
  copy(sourceOf(document.activeElement) ?? [...page.querySelectorAll(".talk .answer")].at(-1));
});
document.body.append(button);
