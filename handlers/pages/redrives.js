// Redrives: retry or discard all letters of a filter, after a preview, and follow the task.

import { get, post, Problem } from "./api.js";
import { confirm } from "./confirm.js";
import { ago, badge, button, capital, card, count, el, fault, field, grouped, plural, renew, table } from "./dom.js";

const LISTED = 5;
const PAGE = 100;
const WORDS = { retry: "Retry all", discard: "Discard all" };
const EFFECTS = { retry: "due now, and their attempts begin again", discard: "discarded for good" };
const share = (done, total) => (done > total ? `${count(done)}, ${count(done - total)} more than confirmed`
  : `${count(done)} of ${count(total)}`);

/** Offer to move the letters of a filter, and show the newest redrives. */
export async function redrivesCard(chosen, address, tasksTable) {
  const jobs = (await get("tasks", { kind: "redrive", limit: LISTED })).tasks;
  const preview = el("div", { "aria-live": "polite" });
  const look = async (move) => {
    try {
      const found = await get("dead-letters/preview", { ...chosen, move });
      renew(preview, previewed(found, move, chosen, address));
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.needsKey) throw problem;
      renew(preview, fault(problem));
    }
  };
  return card("Redrives",
    "partition_key" in chosen ? el("p", { class: "quiet" }, "The letters of one partition key have no preview: use the buttons of their causes.")
      : el("div", { class: "row" }, Object.entries(WORDS).map(([move, word]) =>
        button(word, () => look(move), { class: move === "discard" ? "grave calm" : null, id: `redrive-${move}` }))),
    preview, jobs.length ? tasksTable("Redrives", jobs) : null);
}

/** Show what a redrive would move, and a button that asks for the count and the reason. */
function previewed(found, move, chosen, address) {
  const columns = [
    ["Cause", (one) => el("a", { class: "mono", href: `#/letters?fingerprint=${encodeURIComponent(one.fingerprint)}` },
      one.fingerprint)],
    ["Class", (one) => badge(one.error_class)],
    ["Type", (one) => el("span", { class: "mono" }, one.error_type), "wide"],
    ["Letters", (one) => count(one.letters), "amount"],
  ];
  if (!found.count) return el("p", { id: "preview" }, "No letter of the filter can be moved.");
  return el("div", { id: "preview" },
    el("p", {}, `${plural(found.count, "letter")} will be ${EFFECTS[move]}.`),
    table("Causes of the letters", columns, found.causes),
    el("div", { class: "row" }, button(`${capital(move)} ${count(found.count)}`, () => start(found, move, chosen, address),
      { class: move === "discard" ? "grave" : "main", id: "redrive-start" })));
}

async function start(found, move, chosen, address) {
  let made = null;
  const rate = el("input", { name: "per_second", inputmode: "numeric", size: 8, autocomplete: "off" });
  const done = await confirm({ title: `${capital(move)} letters`, word: capital(move), number: found.count,
    grave: move === "discard", more: [field("Letters per second, at most (empty: no limit)", rate)],
    text: (number) => `${plural(number, "letter")} will be ${EFFECTS[move]}, piece by piece.`,
    act: async (expected, reason) => {
      const limit = rate.value.trim() ? { per_second: Number(rate.value) } : {};
      made = await post("redrives", { move, filter: chosen, expected_count: expected, reason, ...limit });
      return "The redrive has begun";
    } });
  if (done) location.hash = address(made);
}

const chosenOf = (found) => (found.filter === null ? plural(found.total, "selected letter")
  : Object.entries(found.filter).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ") || "all letters");

export const redrive = {
  stays: "the letters that it moved stay moved, and are listed here",
  title: (found) => capital(found.move),
  done: (found) => share(found.done, found.total),
  facts: (found) => [[["Moved", count(found.moved)], ["Changed before, not moved", count(found.unmoved)],
    ["Letters", chosenOf(found)],
    ["Letters per second, at most", found.per_second === null ? "no limit" : count(found.per_second)]]],
  follow: async (place, found, shown, isOver) => { if (isOver) await movedLetters(place, found.task_id); },
};

async function movedLetters(place, id, cursor = "", before = []) {
  const page = await get(`tasks/${encodeURIComponent(id)}/letters`, { limit: PAGE, cursor });
  const columns = [
    ["Position", (one) => el("a", { href: `#/letters/${encodeURIComponent(one.partition_id)}/${one.sequence_number}` },
      `${one.partition_id} / ${grouped(one.sequence_number)}`)],
    ["Now", (one) => (one.status === null ? "gone" : badge(one.status))],
    ["Moved", (one) => ago(one.moved_at)],
  ];
  renew(place, card("Letters that it moved", page.letters.length ? table("Moved letters", columns, page.letters)
    : el("p", {}, "No letter was moved."),
  el("div", { class: "row" },
    before.length ? button("Earlier", () => movedLetters(place, id, before.at(-1), before.slice(0, -1))) : null,
    page.next ? button("Later", () => movedLetters(place, id, page.next, [...before, cursor])) : null)));
}
