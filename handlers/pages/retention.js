// How long the hub still holds the events of open letters and gaps, in a sentence each.

import { get } from "./api.js";
import { count, duration, el, plural } from "./dom.js";

const EVERY_MS = 10_000;

/** Return a reader of the burn-down, which asks the app at most once in 10 s; null while it was not read. */
export function burnDownOfApp() {
  let found = null;
  let askedAt = -Infinity;
  return async () => {
    if (performance.now() - askedAt >= EVERY_MS) {
      askedAt = performance.now();
      found = await get("retention").catch(() => null);
    }
    return found;
  };
}

/** Say which open letters lose their event, whether their bodies are kept, and which gaps lose theirs. */
export function burnDown(found) {
  if (!found || found.letters.open + found.gaps.open === 0) return null;
  const bare = found.letters_without_body;
  const bodies = `Bodies are kept: ${found.bodies_kept ? "yes" : `no, ${plural(bare.open, "letter")} without`}.`;
  const isLoss = soon(bare) || bare.gone > 0 || found.gaps.open > 0;
  const sentences = [
    found.letters.gone ? `The hub no longer holds the event of ${plural(found.letters.gone, "letter")}.` : "",
    losing(found.letters, "letter", found.at),
    found.letters.open ? bodies : "",
    found.gaps.gone ? `The hub no longer holds the events of ${plural(found.gaps.gone, "gap")}.` : "",
    losing(found.gaps, "gap", found.at),
  ].filter(Boolean);
  return el("p", { id: "burn-down", class: isLoss ? "bad" : "" }, sentences.join(" "));
}

const soon = (share) => share.within.find((one) => one.count > 0);

/** Say when the first of a share loses its event, and how many do within the shortest of the windows. */
function losing(share, word, at) {
  if (share.first_lost_at === null) return "";
  const left = duration((Date.parse(share.first_lost_at) - Date.parse(at)) / 1000);
  const window = soon(share);
  if (!window) return `The first ${word} loses its event in ${left}.`;
  const verb = window.count === 1 ? `${word} loses its event` : `${word}s lose their event`;
  return `${count(window.count)} ${verb} within ${window.hours} h, the first in ${left}.`;
}
