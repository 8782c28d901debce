// Makes an element like a fresh one, keeping what the person has done to it: what is open, focused and loaded.

// What only the person changes.
const KEPT = new Set(["open", "data-loaded"]);

export function parsed(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}

const isGroup = (row) => row.querySelector(":scope > .children") !== null;

export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute("data-loaded") && old.className !== fresh.className) {
    old.replaceWith(fresh); // a row has got children, which take the place of what was loaded
    return;
  }
  if (old.nodeName === "DETAILS" && !isGroup(old) && isGroup(fresh) && fresh.open) old.open = true;
  for (const { name, value } of [...fresh.attributes]) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  if (!old.hasAttribute("data-loaded")) morphChildren(old, fresh);
}

// Children with ids are found by them, others by their place.
export function morphChildren(old, fresh) {
  const byId = new Map([...old.children].filter(child => child.id).map(child => [child.id, child]));
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const known = child.id ? byId.get(child.id) : place && !place.id ? place : null;
    if (!known) {
      old.insertBefore(child, place);
      continue;
    }
    if (known !== place) old.insertBefore(known, place);
    const next = known.nextSibling;
    morph(known, child);
    place = next;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
