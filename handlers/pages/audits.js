// An audit as a task: what it found, partition by partition.

import { badge, card, count, el, inOrder, numbersOf, plural, table } from "./dom.js";

const verdict = (found) => (found.faults.length ? plural(found.faults.length, "fault") : "no fault so far");

export const audit = {
  stays: "it has changed nothing",
  title: () => "Audit of the ledger",
  status: (found) => (found.status === "done" && found.faults.length ? "not balanced" : found.status),
  result: (found) => (found.ended_at ? verdict(found).replace(" so far", "") : null),
  done: (found) => `${count(found.done)} of ${plural(found.total, "partition")}`,
  facts: (found) => [[["Found", verdict(found)], ["Numbers accounted for", count(found.accounted)],
    ["Complete", found.complete ? "yes" : "not yet"]]],
  notes: (found) => (found.partitions.some((one) => one.rows?.complete === false)
    ? el("p", {}, "In some partitions only the newest rows were recounted: an audit has a limit.") : null),
  more: (found) => [
    found.faults.length ? card("Faults", table("Faults", [
      ["Partition", (one) => one.partition_id],
      ["Kind", (one) => badge(one.kind)],
      ["Numbers", numbersOf],
      ["What is wrong", (one) => one.detail, "wide"],
    ], found.faults)) : null,
    found.partitions.length ? card("By partition", table("Partitions", [
      ["Partition", (one) => one.partition_id],
      ["Numbers", numbersOf],
      ["Commits", (one) => count(one.commits), "amount"],
      ["Letters", (one) => count(one.letters), "amount"],
      ["State", (one) => badge(one.balanced ? "balanced" : "not balanced")],
    ], inOrder(found.partitions))) : el("p", { class: "quiet" }, "No partition has been audited yet."),
  ],
};
