// Purges: a dry run, which counts the old rows of each table.

import { open, tried } from "./api.js";
import { button, card, count, dated, el, plural, table, taskAt } from "./dom.js";

const mono = (text) => el("span", { class: "mono" }, text);

/** Offer a dry run. */
export function purgesCard() {
  const trouble = el("div", {});
  const start = button("Count old rows", async () => {
    start.disabled = true;
    const counts = async () => { location.hash = taskAt(await open("purge", { reason: "a dry run from the operator's page" })); };
    start.disabled = await tried(trouble, counts);
  }, { id: "purge-count" });
  return card("Purges", el("p", { class: "quiet" }, "A dry run counts the rows that are older than ", mono("PURGE_DAYS"),
    " says, and deletes nothing. ", mono("bin/hubledger purge start"), " deletes them, and each day ", mono("PURGE_DAILY"), "."),
  el("div", { class: "row actions" }, start), trouble);
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
