// The ledger explorer: enter a number, see where it went.

import { get, tried } from "./api.js";
import { ago, badge, button, card, count, dated, el, facts, field, form, grouped, ledgerAt, letterAt, messageOf, mono,
  numbersOf, positionOf, quiet, table, wordOf } from "./dom.js";

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
  place.append(el("h1", {}, "Where did a number go?"),
    card("Find a number", form({ class: "row" }, go, field("Partition", id), field("Sequence number", digits),
      el("button", { class: "main" }, "Explain")),
    quiet("Each letter, task and row of a table names its partition and sequence number.")), found, byKey(), byTime());
  if (partition) await show(found, left, partition, number);
}

/** The form that finds the commits of a time. */
function byTime() {
  const at = el("input", { name: "at", type: "datetime-local", step: 1, required: true });
  const found = el("div", { "aria-live": "polite" });
  const look = () => tried(found, async () => {
    const { commits } = await get("ledger", { at: new Date(`${at.value}Z`).toISOString() });
    found.replaceChildren(table("Commits", [["Partition", (one) => one.partition_id],
      ["Numbers", (one) => (one.commit ? el("a", { href: ledgerAt({ ...one, sequence_number: one.commit.first }) },
        numbersOf(one.commit)) : "none since")],
      ["Commit", (one) => (one.commit ? count(one.commit.commit_number) : ""), "amount"],
      ["Kind", (one) => (one.commit ? badge(one.commit.kind) : "")],
      ["Committed", (one) => (one.commit ? dated(one.commit.committed_at) : "")]], commits));
  });
  return card("Find a time", form({ class: "row" }, look, field("Committed since (UTC)", at),
    el("button", { class: "main", id: "find-time" }, "Find")),
  quiet("The first commit of each partition since then."), found);
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
  quiet("The newest places of each partition first. The log records your name."), found);
}

const show = (found, left, partition, number) => tried(found, async () => {
  found.replaceChildren(quiet("Reading the ledger…"));
  const told = await get(`ledger/${encodeURIComponent(partition)}/${encodeURIComponent(number)}`);
  if (!left.aborted) found.replaceChildren(...parts(told));
});

function parts(told) {
  const step = (by) => {
    const next = BigInt(told.sequence_number) + BigInt(by);
    return next < 0n ? null : el("a", { href: ledgerAt({ ...told, sequence_number: next }) }, by < 0 ? "← previous" : "next →");
  };
  return [
    card("Outcome", el("p", { class: "verdict", id: "outcome" },
      positionOf(told), badge(told.outcome)),
    el("p", {}, told.sentence), el("p", { class: "row" }, step(-1), step(1))),
    el("div", { class: "columns" },
      card("Commit", told.range ? null : el("p", {}, "No range of the ledger holds this number."),
        facts([...(told.range ? range(told.range) : []), ["Partition's ledger", `${grouped(told.first)} to ${grouped(told.checkpoint)}, the checkpoint`]])),
      told.letter ? card("Letter", facts([["Status", badge(told.letter.status)],
        ["Error", el("span", { class: "error" }, messageOf(told.letter))], ["Attempts", count(told.letter.attempts)]]),
      el("p", {}, el("a", { href: letterAt(told) }, "Show the letter"))) : null,
      told.gap ? card("Gap", facts([["Numbers", numbersOf(told.gap)],
        ["Status", badge(told.gap.status)], ["Found", dated(told.gap.found_at)]])) : null),
    rowsCard(told),
    told.changes.length ? card("Changes by retries and replays", table("Changes", [
      ["Commit", (one) => count(one.commit_number)], ["Kind", (one) => badge(one.kind)],
      ["Numbers", numbersOf],
      ["Written", (one) => count(one.written), "amount"],
      ["When", (one) => ago(one.committed_at)]], told.changes)) : null,
  ].filter(Boolean);
}

/** Show the rows of a number; they are null for a caller who may not see them. */
function rowsCard({ rows, outcome }) {
  if (rows === null && outcome.startsWith("written")) return card("Rows", quiet("The rows are hidden."));
  return rows?.length ? card("Rows", rows.map(row)) : null;
}

const range = (one) => [["Commit", count(one.commit_number)],
  ["Sequence numbers", numbersOf(one)],
  ["Outcomes", ["written", "filtered", "dead_lettered", "held", "absent"].filter((name) => one[name])
    .map((name) => `${count(one[name])} ${wordOf(name)}`).join(", ")],
  ["Transform", one.transform_version], ["Invocation", mono(one.invocation_id)],
  ["Committed", dated(one.committed_at)]];

const row = (one) => [el("h3", {}, one.table), facts([["Commit", count(one.commit_number)],
  ...Object.entries(one.columns).map(([name, value]) => [name, mono(value)])])];
