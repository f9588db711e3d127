// The partitions: those in trouble first, with the reason; the healthy ones in one line that unfolds.

import { card, count, duration, el, grouped, plural, relative, table } from "./dom.js";
import { LATE_SECONDS } from "./needs.js";

const MOST = 8; // partitions in trouble that are not folded

/** List the troubles of a partition, the gravest first: [rank, words, tone]. A healthy partition has none. */
function troublesOf(one, standing) {
  return [
    [0, one.balanced ? "" : "not balanced", "bad"],
    [1, one.stops.length ? "stopped" : standing.has(one.partition_id) ? "stands" : "", "bad"],
    [2, one.open_gaps ? plural(one.open_gaps, "open gap") : "", ""], // it heals by itself
    [3, one.lag_seconds >= LATE_SECONDS ? `late by ${duration(one.lag_seconds)}` : "", "warn"],
  ].filter(([, words]) => words);
}

/** Return true if the hub's end was read before the checkpoint advanced: the end is then older than the checkpoint. */
const isOlder = (one) => one.hub_end !== null && one.checkpoint !== null && BigInt(one.hub_end) < BigInt(one.checkpoint);

export function byPartition(status) {
  const now = Date.parse(status.at);
  const end = (one) => [grouped(one.hub_end),
    isOlder(one) ? el("span", { class: "quiet" }, ` read ${relative(status.hub_read_at, now)}`) : null];
  const columns = [
    ["Partition", (one) => one.partition_id],
    ["Checkpoint", (one) => grouped(one.checkpoint ?? null), "amount"],
    ["Hub's end", end, "amount"],
    ["Lag", (one) => count(one.lag), "amount"],
    ["Behind", (one) => duration(one.lag_seconds), "amount"],
    ["Open gaps", (one) => count(one.open_gaps ?? 0), "amount"],
    ["Accounted", (one) => count(one.accounted), "amount"],
    ["Letters", (one) => count(one.dead_lettered), "amount"],
  ];
  const standing = new Set(status.standing.map((one) => one.partition_id));
  const trouble = ["Trouble", (one) => troublesOf(one, standing).map(([, words, tone]) => [el("span", { class: `badge ${tone}` }, words), " "])];
  const inTrouble = [columns[0], trouble, ...columns.slice(1)];
  const rank = (one) => troublesOf(one, standing)[0][0];
  const [bad, healthy] = [true, false].map((isBad) =>
    status.partitions.filter((one) => (troublesOf(one, standing).length > 0) === isBad));
  bad.sort((one, other) => rank(one) - rank(other)); // a stable sort: by partition within a rank
  return card("Partitions", status.partitions.length ? null : el("p", {}, "Nothing is committed yet."),
    el("div", {}, bad.length ? table("Partitions in trouble", inTrouble, bad.slice(0, MOST)) : null),
    folded("troubled", `${plural(bad.length - MOST, "more partition")} in trouble`, "More partitions in trouble", inTrouble, bad.slice(MOST)),
    folded("healthy", `${plural(healthy.length, "partition")} healthy`, "Partitions", columns, healthy));
}

const folded = (id, words, label, columns, entries) => (entries.length
  ? el("details", { id }, el("summary", {}, words), table(label, columns, entries)) : null);
