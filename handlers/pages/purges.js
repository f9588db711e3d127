// Purges: the last one, and a dry run, which counts the old rows of each table.

import { get, open, tried } from "./api.js";
import { badge, button, card, count, dated, el, plural, table, taskAt } from "./dom.js";

// The rows of a table that a purge knows, in plain words.
const ROWS = { batch_ledger: "Ledger rows", event_hub_dead_letter: "Settled letters", staged_event: "Events staged out of Capture",
  replay_diff: "Changes that dry runs found", task: "Ended tasks", aggregation_failure: "Failures of runs" };

const mono = (text) => el("span", { class: "mono" }, text);

/** Show after how many days rows are old, and the last purge; offer a dry run. */
export async function purgesCard({ older_than_days: days, purge_daily: isDaily }) {
  const [last] = (await get("tasks", { kind: "purge", limit: 1 })).tasks;
  const trouble = el("div", {});
  const start = button("Count old rows", async () => {
    start.disabled = true;
    const counts = async () => { location.hash = taskAt(await open("purge", { reason: "a dry run from the operator's page" })); };
    start.disabled = await tried(trouble, counts);
  }, { id: "purge-count" });
  return card("Purges", el("p", { class: "quiet" },
    isDaily ? ["A purge deletes old rows each day (", mono("PURGE_DAILY"), " is true)."]
    : ["No purge begins by itself (", mono("PURGE_DAILY"), " is false). ", mono("bin/hubledger purge start"), " begins one."]),
  table("Days", [["Rows", ([name]) => [`${ROWS[name] ?? name} `, el("span", { class: "mono quiet" }, name)], "bare"],
    ["Purged after", ([, number]) => el("span", { class: "whole" }, plural(number, "day")), "wide"]], Object.entries(days)),
  el("p", { class: "quiet" }, mono("PURGE_DAYS"), " changes these days. A dry run counts the old rows, and deletes nothing."),
  el("div", { class: "row actions" }, start), trouble,
  last ? el("p", { id: "purge" }, "The last one: ", badge(last.status),
    el("a", { href: taskAt(last) }, purge.done(last)), ", ", dated(last.requested_at))
    : el("p", { id: "purge" }, "No purge has been requested yet."));
}

export const purge = {
  stays: "the rows that it deleted stay deleted",
  title: (found) => (found.dry_run ? "Dry run: nothing is deleted" : "Purge"),
  done: (found) => `${plural(found.rows, "row")} ${found.dry_run ? "counted" : "deleted"}`,
  facts: (found) => [[["Parts done", `${count(found.done)} of ${count(found.total)}`],
    ["Older than, in days", Object.entries(found.older_than_days).map(([name, days]) => `${name} ${days}`).join(", ")]]],
  more: (found) => {
    const tables = found.tables.filter((one) => one.rows || one.notes.length);
    return [tables.length ? card("By table", table("Tables of the purge", [
      ["Table", (one) => el("span", { class: "mono" }, one.table)],
      ["Rows", (one) => count(one.rows), "amount"],
      ["Bytes", (one) => count(one.bytes), "amount"],
      ["Oldest", (one) => dated(one.oldest)],
      ["What stays", (one) => one.notes.join("; "), "wide"],
    ], tables)) : null];
  },
};
