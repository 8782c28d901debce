// Asks the console, and says on the page when it does not answer or no longer lets this page in.
import { keepFocus, morphChildren, parsed } from "./morph.js";

const NO_ANSWER = "The console does not answer. This page tries again; if the console has ended, start it again with devhost ui.";
const NOT_LET_IN = "The console was started again. Open the address that it printed: it holds the token that lets you in.";
const REFUSED = 403;

const asked = new WeakMap();
const shown = new WeakMap();

export function say(id, sentence) {
  const place = document.getElementById(id);
  if (!place) return;
  if (place.textContent !== sentence) place.textContent = sentence;
  place.hidden = !sentence;
}

export const sayOffline = (isOffline) => say("offline", isOffline ? NO_ANSWER : "");

// { ok, text, statusText }; null if the console does not answer, or if `options.signal` took the question back.
export async function ask(address, options) {
  try {
    const answer = await fetch(address, options);
    const text = await answer.text();
    say("offline", answer.status === REFUSED ? NOT_LET_IN : "");
    return { ok: answer.ok, text, statusText: answer.statusText };
  } catch {
    if (!options?.signal?.aborted) sayOffline(true);
    return null;
  }
}

// What to show about `place`: null also for an answer that comes after that to a later question. An answer that is
// not the last one asked for counts until then: what changes faster than the console answers would never be shown.
export async function askAbout(place, address, options) {
  const number = (asked.get(place) ?? 0) + 1;
  asked.set(place, number);
  const answer = await ask(address, options);
  if (!answer?.ok || number < (shown.get(place) ?? 0)) return null;
  shown.set(place, number);
  return answer;
}

// Makes what `place` holds like the fragment of HTML that the console renders there. Whether it has come.
export async function refresh(place, address) {
  const answer = await askAbout(place, address);
  if (answer) keepFocus(place, () => morphChildren(place, parsed(answer.text)));
  return answer !== null;
}
