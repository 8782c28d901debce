// Sends a form once: a double click on Start would start two runs. The page is left with the answer.

// On the window, after the scripts that send a form on their own.
window.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.hasAttribute("data-sent")) event.preventDefault();
  else form.setAttribute("data-sent", ""); // a disabled button would not be sent with it
});
// Back, with the page as it was left.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) form.removeAttribute("data-sent");
});
