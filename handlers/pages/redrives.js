// Redrives: retry or discard letters. Few are moved at once; of many, or with a rate, the task goes on and is followed.

import { get, open, tried } from "./api.js";
import { confirm } from "./confirm.js";
import { badge, button, capital, card, causeAt, count, el, field, isNarrow, plural, renew, table, taskAt } from "./dom.js";

const LISTED = 5;
/** A move: its words, and the statuses of the letters that it may take. */
export const MOVES = {
  retry: { word: "Retry", title: "Retry letters", done: "to be retried now", grave: false, from: ["waiting", "exhausted"],
    text: (number) =>
      `${plural(number, "letter")} will be due now, and ${number === 1 ? "its" : "their"} attempts begin again.` },
  discard: { word: "Discard", title: "Discard letters", done: "discarded", grave: true,
    from: ["waiting", "retrying", "held", "exhausted"],
    text: (number) =>
      `${plural(number, "letter")} will be discarded for good. ${number === 1 ? "Its event stays" : "Their events stay"} accounted for as dead-lettered.` },
};
const share = (done, total) => (done > total ? `${count(done)}, ${count(done - total)} more than confirmed`
  : `${count(done)} of ${count(total)}`);

/** Ask for the count and the reason, and move the letters; a task that goes on is shown on its own page. */
export async function order(move, chosen, number, again, rate = null) {
  const [how, id] = [MOVES[move], crypto.randomUUID()];
  let made = null;
  const act = async (expected, reason) => {
    const limit = rate?.value.trim() ? { per_second: Number(rate.value) } : {};
    made = await open("redrive", { move, ...chosen, expected_count: expected, reason, ...limit }, id);
    return isOver(made) ? outcome(made) : "The task goes on";
  };
  const more = rate ? [field("Letters per second, at most (empty: no limit)", rate)] : [];
  if (!await confirm({ ...how, number, act, more })) return;
  if (isOver(made) && (move === "discard" || number === 1)) await again();
  else location.hash = taskAt(made); // it shows how the tries end
}

const isOver = (made) => made.ended_at !== null;
const outcome = (made) => [`${plural(made.moved, "letter")} ${MOVES[made.move].done}`,
  made.unmoved ? `${count(made.unmoved)} had changed and were not moved` : "",
  made.status === "done" ? "" : `the task is ${made.status}`].filter(Boolean).join("; ");

/** Show the newest redrives, if there are some. */
export async function redrivesCard(tasksTable) {
  const jobs = (await get("tasks", { kind: "redrive", limit: LISTED })).tasks;
  return jobs.length ? card("Redrives", el("details", { open: !isNarrow() },
    el("summary", {}, `The last ${jobs.length === 1 ? "one" : count(jobs.length)}`), tasksTable("Redrives", jobs))) : "";
}

/** Offer to move all letters of a filter, after a preview. */
export function moveAll(chosen, groups, again, canRetry) {
  const preview = el("div", { "aria-live": "polite" });
  const look = (move) => tried(preview, async () => {
    const found = await get("dead-letters/preview", { ...chosen, move });
    renew(preview, previewed(found, move, chosen, groups, again));
  });
  const moves = Object.entries(MOVES).filter(([move]) => move !== "retry" || canRetry);
  return el("div", {}, "partition_key" in chosen ? el("p", { class: "quiet" }, "The letters of one partition key have no preview: use the buttons of their causes.")
      : el("div", { class: "row" }, moves.map(([move, { word, grave }]) =>
        button(`${word} all`, () => look(move), { class: grave ? "grave calm" : null, id: `redrive-${move}` }))),
    preview);
}

/** Show what would be moved, and a button that asks for the count and the reason. */
function previewed(found, move, chosen, groups, again) {
  const { word, grave, text } = MOVES[move];
  const messages = new Map(groups.map((one) => [one.fingerprint, one.template]));
  const rate = el("input", { name: "per_second", inputmode: "numeric", size: 8, autocomplete: "off" });
  const columns = [
    ["Cause", (one) => el("a", { class: "error", href: causeAt(one.fingerprint) },
      messages.get(one.fingerprint) ?? `${one.error_type} (${one.fingerprint})`), "wide"],
    ["Class", (one) => badge(one.error_class)],
    ["Letters", (one) => count(one.letters), "amount"],
  ];
  if (!found.count) return el("p", { id: "preview" }, "No letter of the filter can be moved.");
  return el("div", { id: "preview" },
    el("p", {}, text(found.count)),
    table("Causes of the letters", columns, found.causes),
    el("div", { class: "row" }, button(`${word} ${count(found.count)}`,
      () => order(move, { filter: chosen }, found.count, again, rate),
      { class: grave ? "grave" : "main", id: "redrive-start" })));
}

/** Say which letters were chosen; a cause is a link, because its name is a hash. */
function chosenOf(found) {
  if (found.filter === null) return plural(found.total, "selected letter");
  const { fingerprint: cause, ...others } = found.filter;
  const said = Object.entries(others).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ");
  if (!cause) return said || "all letters";
  return [el("a", { href: causeAt(cause) }, "those of one cause"), said ? `, ${said}` : ""];
}

const isTrying = (found) => found.outcome?.result === "not_tried";

/** Say what became of the letters that a retry moved. */
function outcomeOf({ outcome, moved }) {
  if (!outcome) return null;
  const some = outcome.letters < moved ? `of ${plural(outcome.letters, "letter")}: ` : "";
  return el("p", { id: "outcome" }, badge(outcome.result), ` ${some}${outcome.words}`);
}

export const redrive = {
  status: (found) => (found.status === "done" ? found.outcome?.result : null) ?? found.status,
  result: (found) => found.outcome?.words ?? (found.move === "discard" ? `${plural(found.moved, "letter")} discarded` : null),
  goesOn: isTrying,
  notes: outcomeOf,
  stays: "the letters that it moved stay moved",
  title: (found) => capital(found.move),
  done: (found) => share(found.done, found.total),
  facts: (found) => [[["Moved", count(found.moved)], ["Changed before, not moved", count(found.unmoved)],
    ["Letters", chosenOf(found)],
    ["Letters per second, at most", found.per_second === null ? "no limit" : count(found.per_second)]]],
};
