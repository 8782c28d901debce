// Makes an element like a fresh one, keeping what the person has done to it: what is open, focused and loaded.

// What only the person changes.
const KEPT = new Set(["open", "data-loaded"]);
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

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

// Children with ids are found by them, others by their place. What has [data-own] is the page's, not the server's.
export function morphChildren(old, fresh) {
  const byId = new Map([...old.children].filter(child => child.id).map(child => [child.id, child]));
  const wanted = new Set([...fresh.children].map(child => child.id));
  let place = served(old.firstChild);
  for (const child of [...fresh.childNodes]) {
    const known = child.id ? byId.get(child.id) : place && !place.id ? place : null;
    if (!known) {
      old.insertBefore(child, place);
      continue;
    }
    // What stands before it and is gone is removed first: an element that is moved loses the focus.
    while (place && place !== known && !(place.id && wanted.has(place.id))) place = removed(place);
    if (known !== place) old.insertBefore(known, place);
    const next = served(known.nextSibling);
    morph(known, child);
    place = next;
  }
  while (place) place = removed(place);
}

function served(node) {
  while (node?.dataset?.own !== undefined) node = node.nextSibling;
  return node;
}

function removed(node) {
  const next = served(node.nextSibling);
  node.remove();
  return next;
}

// Does `change`, after which the focus is where it was, or on what stood before it if that is gone.
export function keepFocus(holder, change) {
  const focused = holder.contains(document.activeElement) ? document.activeElement : null;
  const stops = focused ? [...holder.querySelectorAll(FOCUSABLE)] : [];
  change();
  if (!focused || document.activeElement === focused) return;
  const at = stops.indexOf(focused);
  const shown = (stop) => stop.isConnected && stop.checkVisibility();
  const next = shown(focused) ? focused : stops.slice(0, at).findLast(shown) ?? stops.slice(at).find(shown);
  next?.focus({ preventScroll: true });
}
