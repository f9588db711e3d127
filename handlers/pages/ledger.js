// The ledger explorer: enter a number, see where it went.

import { get, Problem, tried } from "./api.js";
import { badge, button, card, count, dated, el, facts, field, form, grouped, ledgerAt, letterAt, messageOf, mono,
  numbersOf, positionOf, quiet, table, wordOf } from "./dom.js";
import { KINDS } from "./letters.js";

export async function ledger(place, left, partition = "", number = "") {
  const id = el("input", { name: "partition", size: 6, required: true, value: partition, autocomplete: "off" });
  const digits = el("input", { name: "number", size: 20, required: true, inputmode: "numeric", value: number,
    autocomplete: "off" });
  const found = el("div", { class: "place", "aria-live": "polite" });
  const go = () => {
    const plain = digits.value.replaceAll(/[ ,.]/g, "");
    const asked = `#/ledger/${encodeURIComponent(id.value.trim())}/${encodeURIComponent(plain)}`;
    if (location.hash === asked) show(found, left, id.value.trim(), plain);
    else location.hash = asked;
  };
  place.append(el("h1", {}, "Ledger: what became of an event"),
    partition ? found : el("p", {}, "When somebody misses an event, or asks where a row comes from, look it up here. Looking changes nothing."),
    card("Find a number", form({ class: "row" }, go, field("Partition", id), field("Sequence number", digits),
      el("button", { class: partition ? "" : "main" }, "Show what became of it")),
    quiet("A letter and a task name both, and your tables have them as partition_id and sequence_number.",
      partition ? [" Without them, ", el("a", { href: "#/ledger" }, "find the event by its key or time"), "."] : "")),
    partition ? "" : el("div", { class: "columns" }, byKey(), byTime()));
  if (partition) await show(found, left, partition, number);
}

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(:\d\d)?)Z?$/;

/** The form that finds the commits since a time. Its field is text: the browser's own field has local times. */
function byTime() {
  const now = new Date().toISOString().slice(0, 16).replace("T", " ");
  const at = el("input", { name: "at", size: 24, required: true, autocomplete: "off", placeholder: `such as ${now}` });
  const found = el("div", { "aria-live": "polite" });
  const look = () => tried(found, async () => {
    const [, day, time] = TIME.exec(at.value.trim()) ?? [];
    const since = new Date(`${day}T${time}Z`);
    if (isNaN(since)) throw new Problem(400, { detail: `“${at.value}” is not a time. Write it like ${now}, in UTC.` });
    const { commits } = await get("ledger", { at: since.toISOString() });
    found.replaceChildren(table("Commits", [["Partition", (one) => one.partition_id],
      ["Numbers", (one) => (one.commit ? el("a", { href: ledgerAt({ ...one, sequence_number: one.commit.first }) },
        numbersOf(one.commit)) : "none since")],
      ["Commit", (one) => (one.commit ? count(one.commit.commit_number) : ""), "amount"], ["Kind", (one) => (one.commit ? badge(one.commit.kind) : "")],
      ["Committed", (one) => (one.commit ? dated(one.commit.committed_at) : "")]], commits));
  });
  return card("Find a time", form({ class: "row" }, look, field("Committed at or after (UTC)", at),
    el("button", { class: "main", id: "find-time" }, "Find")),
  quiet("When you know only when: the first commit of each partition since then, with its sequence numbers."), found);
}

/** The form that finds the places of a key, page by page. */
function byKey() {
  const key = el("input", { name: "key", size: 20, required: true, autocomplete: "off" });
  const found = el("div", { "aria-live": "polite" });
  const go = (cursor = "") => tried(found, async () => {
    const { places, next, sentence } = await get("ledger", { key: key.value, cursor });
    found.replaceChildren(...[table("Places", [["Position", (one) => el("a", { href: ledgerAt(one) }, positionOf(one))],
      ["Letter", (one) => (one.letter ? "yes" : "")], ["Rows in", (one) => one.tables.join(", ")]], places),
    places.length ? null : el("p", {}, next ? "None among the numbers that were searched so far." : "No place has this key."),
    next ? button("Older", () => go(next)) : null, quiet(sentence)].filter(Boolean));
  });
  return card("Find a key", form({ class: "row" }, () => go(), field("Partition key or subject", key), el("button", { class: "main", id: "find-key" }, "Find")),
  quiet("When you know only whose event it is, such as a customer or a device: its events, the newest of each partition first. The log records your name."), found);
}

const show = (found, left, partition, number) => tried(found, async () => {
  found.replaceChildren(quiet("Reading the ledger…"));
  const told = await get(`ledger/${encodeURIComponent(partition)}/${encodeURIComponent(number)}`);
  if (!left.aborted) found.replaceChildren(...parts(told));
});

function parts(told) {
  const step = (by) => {
    const next = BigInt(told.sequence_number) + BigInt(by);
    return next < 0n ? null : el("a", { href: ledgerAt({ ...told, sequence_number: next }) }, by < 0 ? "← previous number" : "next number →");
  };
  const open = told.letter && told.letter.status !== "resolved";
  return [
    card("Outcome", el("p", { class: "verdict", id: "outcome" }, `Event ${grouped(told.sequence_number)} of partition ${told.partition_id}`, badge(told.outcome)),
      el("p", {}, told.sentence), open ? el("span", { class: "error" }, messageOf(told.letter)) : null,
      told.letter ? el("p", { class: "row" }, el("a", { class: open ? "go main" : "go", href: letterAt(told) }, open ? "Open its letter, to retry or discard it" : "Open its letter")) : null, el("p", { class: "row" }, step(-1), step(1))),
    card("Step by step", el("ol", { class: "attempts" }, steps(told).map(([at, ...said]) => el("li", {}, dated(at), ": ", said))),
      quiet(`The ledger of this partition goes from number ${grouped(told.first)} to ${grouped(told.checkpoint)}, the checkpoint: every number up to it has its outcome.`),
      told.range ? el("details", {}, el("summary", {}, "The commit in detail"), facts(range(told.range))) : null),
    told.rows === null && told.outcome.startsWith("written") ? card("Rows", quiet("The rows are hidden."))
      : told.rows?.length ? card("Rows", told.rows.map(row)) : null,
  ].filter(Boolean);
}

/** Tell in the order of time what happened to the event: [time, words]. */
function steps({ range: of, gap, changes, history }) {
  const committed = (one) => [one.committed_at, `commit ${count(one.commit_number)}, ${one.kind === "batch" ? "a batch" : `a ${one.kind}`} in one transaction, had `,
    one.first === one.last ? "this event alone" : `the events ${numbersOf(one)}`, `: ${outcomesOf(one)}`];
  const known = new Set(changes.map((one) => one.commit_number));
  return [of && committed(of), gap && [gap.found_at, `numbers ${numbersOf(gap)} were missing in what the hub sent. This gap is now `, badge(gap.status)],
    ...changes.map(committed),
    ...history.filter((one) => !known.has(one.commit_number)).map((one) => [one.done_at, `${KINDS[one.kind] ?? one.kind} by ${one.done_by}, after which its letter was `, badge(one.status), one.why ? quiet(one.why) : ""]),
  ].filter(Boolean).sort(([one], [other]) => Date.parse(one) - Date.parse(other));
}

const outcomesOf = (one) => ["written", "filtered", "dead_lettered", "held", "absent"].filter((name) => one[name])
  .map((name) => `${count(one[name])} ${wordOf(name)}`).join(", ");

const range = (one) => [["Commit", count(one.commit_number)], ["Sequence numbers", numbersOf(one)], ["Outcomes", outcomesOf(one)],
  ["Transform", one.transform_version], ["Invocation", mono(one.invocation_id)], ["Committed", dated(one.committed_at)]];

const row = (one) => [el("h3", {}, one.table), facts([["Commit", count(one.commit_number)], ...Object.entries(one.columns).map(([name, value]) => [name, mono(value)])])];
