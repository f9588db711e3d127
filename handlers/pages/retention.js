// What will be gone: the events of open letters and gaps, which the hub holds for a limited time, and old rows.

import { get, repeat, seldom } from "./api.js";
import { ago, card, count, duration, el, fault, plural, renew, table } from "./dom.js";
import { erasuresCard } from "./erasures.js";
import { purgesCard } from "./purges.js";

const EVERY_MS = 10_000;

export async function retention(place, left) {
  const [burning, purges] = [1, 2].map(() => el("div", {}));
  place.append(el("h1", {}, "Retention"), burning, purges);
  await repeat(left, EVERY_MS, burning, async () => {
    const found = await get("retention");
    renew(burning, inHub(found));
    if (!purges.hasChildNodes()) purges.append(await purgesCard(found), erasuresCard());
  });
}

/** Show which events the hub will forget, by partition: those in the greatest hurry first. */
function inHub(found) {
  const held = found.hub_retention_hours === null ? "The hub does not say how long it holds an event; its page in Azure does."
    : `The hub holds an event for ${duration(3600 * found.hub_retention_hours)}.`;
  const columns = [["Partition", (one) => one.partition_id], ["Open letters", (one) => count(one.letters), "amount"],
    ["Without a body", (one) => count(one.letters_without_body), "amount"], ["Gaps", (one) => count(one.gaps), "amount"],
    ["Lost already", (one) => count(one.gone), "amount"],
    ["First loss", (one) => (one.first_lost_at ? ago(one.first_lost_at) : "–")]];
  const hurry = (one) => one.hours_left ?? Infinity;
  const partitions = found.partitions.filter((one) => one.gaps || one.gone || one.letters_without_body || one.first_lost_at).sort((one, other) => hurry(one) - hurry(other));
  return card("Events in the hub", el("p", {}, held),
    found.hub_fault ? fault({ detail: `The hub does not answer: ${found.hub_fault}` }) : null,
    burnDown(found) ?? el("p", {}, "No open letter and no gap waits for an event that the hub will forget."),
    partitions.length ? table("Events that wait in the hub", columns, partitions) : null);
}

/** Return a reader of the burn-down; null while it was not read. */
export const burnDownOfApp = () => seldom(() => get("retention").catch(() => null));

/** Say which open letters lose their event, whether their bodies are kept, and which gaps lose theirs. */
export function burnDown(found) {
  if (!found || found.letters.open + found.gaps.open === 0) return null;
  const bare = found.letters_without_body;
  const bodies = found.bodies_kept ? "The bodies of letters are stored here, so they outlive the hub."
    : `Bodies are not kept: ${plural(bare.open, "letter")} without.`;
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
