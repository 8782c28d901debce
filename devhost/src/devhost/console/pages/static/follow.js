// Follows what goes on: <div data-follow="ADDRESS"> becomes the HTML that the server sends, until it says "end".
import { sayOffline } from "./ask.js";
import { keepFocus, morphChildren, parsed } from "./morph.js";

for (const place of document.querySelectorAll("[data-follow]")) {
  const source = new EventSource(place.dataset.follow);
  source.addEventListener("open", () => sayOffline(false));
  source.addEventListener("error", () => sayOffline(true));
  source.addEventListener("part", event => keepFocus(place, () => morphChildren(place, parsed(event.data))));
  source.addEventListener("pieces", event => keepFocus(place, () => fill(JSON.parse(event.data))));
  source.addEventListener("end", () => {
    source.close();
    place.dispatchEvent(new CustomEvent("follow:end", { bubbles: true }));
  });
}

// What the part itself leaves empty.
function fill(pieces) {
  for (const [id, html] of Object.entries(pieces)) {
    const piece = document.getElementById(id);
    piece.dataset.loaded = "";
    morphChildren(piece, parsed(html));
  }
}
