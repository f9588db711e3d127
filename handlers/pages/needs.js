// What needs an operator: a line for each matter, the gravest first, with the button that leads to it and its runbook.

import { ago, capital, card, count, duration, el, instant, plural, table } from "./dom.js";
import { guideAt } from "./guides.js";

export const LATE_SECONDS = 300; // as the alert `lag` by default
const FEW = 3; // partitions of a line that are named
const SHOWN = 8; // partitions of a row that are named

// A reason of stops: what it means, and what to do.
const STOPS = {
  incarnation: "The hub is not the one that the stream was read from. Open the next incarnation of the stream, as the guide says.",
  outage: "Most events of a batch fail, so nothing of it is written. Repair what the events need, such as a table or a service, or deploy the last version that worked: the next attempt ends the stop.",
  store: "The database fails again and again on one batch: the detail has its error. Clear what blocks it.",
  trigger: "The host delivers no more events of this partition. The app's own reader brings it level once a minute.",
  held: "Too many events wait for an open letter of the same key. Retry or discard the letters that they wait for, never the held ones.",
};

/** Return the newest run of each aggregate, if its rows differ from the ledger. */
export const faulty = (runs) => [...Map.groupBy(runs.filter((one) => one.quality), (one) => one.job).values()]
  .map(([newest]) => newest).filter((one) => one.quality.fault);

/** Return the lines: [tone, words, where the button goes, its word, the section of the runbook, a detail]. */
function matters(status, runs) {
  const found = [];
  const reasons = Map.groupBy(status.partitions.flatMap((one) => one.stops), (one) => one.reason);
  const uneven = status.partitions.filter((one) => !one.balanced);
  if (!status.ledger_balanced || uneven.length) {
    const where = uneven.length === 1 ? ` in partition ${uneven[0].partition_id}` : uneven.length ? ` in ${plural(uneven.length, "partition")}` : "";
    found.push(["bad", `The ledger does not balance${where}`, "[aria-label=Audit]", "Audit it", "ledger-unbalanced"]);
  }
  for (const [reason, stops] of reasons) {
    found.push(["bad", `${namedOf(stops)} stopped: ${reason}`, "#stopped", "Show", reason in STOPS ? reason : "stop-recorded", STOPS[reason]]);
  }
  const standing = status.standing.filter(({ partition_id: id }) => !status.partitions.some((one) => one.partition_id === id && one.stops.length));
  if (standing.length) {
    const faults = [...new Set(standing.map((one) => one.fault).filter(Boolean))];
    const why = faults.length ? ` The last error of its batches: ${faults.join(", ")}.` : "";
    const verb = standing.length === 1 ? "stands" : "stand";
    found.push(["bad", `${namedOf(standing)} ${verb}`, "[aria-label=Partitions]", "Show", "partition-stopped", `Events wait, and no batch is committed since ${instant(standing.map((one) => one.since).sort()[0]).textContent}.${why}`]);
  }
  if (status.hub_fault) found.push(["bad", "The hub does not answer", null, "", "partition-stopped", `The lag is unknown. Error: ${status.hub_fault}`]);
  for (const run of faulty(runs)) {
    found.push(["bad", `The rows of ${run.job.replace(/^rows\./, "")} differ from the ledger`, `#/runs/${encodeURIComponent(run.run_id)}`, "Show the run", "aggregation-quality", capital(run.quality.fault)]);
  }
  const { exhausted } = status.letters;
  if (exhausted) {
    const verb = exhausted === 1 ? "needs" : "need";
    found.push(["warn", `${plural(exhausted, "letter")} ${verb} you`, "#/letters?status=exhausted", "Show them", "letters-open"]);
  }
  const late = status.partitions.filter((one) => one.lag_seconds >= LATE_SECONDS && one.stops.length === 0
    && !standing.some(({ partition_id: id }) => id === one.partition_id));
  if (late.length) {
    const longest = Math.max(...late.map((one) => one.lag_seconds));
    const words = late.length === 1 ? `Partition ${late[0].partition_id} is late by ${duration(longest)}`
      : `${plural(late.length, "partition")} late, the longest by ${duration(longest)}`;
    found.push(["warn", words, "[aria-label=Partitions]", "Show", "lag", "Events are written late, but none is lost. Check whether the lag grows."]);
  }
  if (found.length === 0 && status.numbers) found.push(["good", "All is well"]);
  return found;
}

const idsOf = (stops) => [...new Set(stops.map((one) => one.partition_id))];

/** Name partitions at the beginning of a sentence: a few by their ids, more by their count. */
function namedOf(stops) {
  const ids = idsOf(stops);
  return ids.length > FEW ? plural(ids.length, "partition") : `Partition${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
}

/** Fill a place with what needs an operator; else with "All is well", or how to send the first event. It is filled again
 * only when something has changed, so that it is read aloud once. */
export function needs(place, status, runs = []) {
  const found = matters(status, runs);
  const now = JSON.stringify(found);
  if (place.dataset.of === now) return;
  place.dataset.of = now;
  place.replaceChildren(el("div", { class: "lead" }, found.length ? found.map(line) : first(status)));
}

const first = (status) => el("div", { class: "matter" },
  el("p", { class: "words" }, "No event has arrived yet"),
  el("p", {}, `Send the first one to the hub ${status.event_hub}. A local run brings its own events: `,
    el("code", {}, "make run"), "; your own from a file, with the room that takes them: ",
    el("code", {}, "make run TRANSFORM=apps.orders EVENTS_FROM=events.jsonl"), "."));

function line([tone, words, to, word, heading, detail]) {
  const go = to?.startsWith("#/") ? el("a", { class: "go", href: to }, word)
    : to ? el("button", { type: "button", class: "go", onclick: () => reveal(to) }, word) : null;
  return el("div", { class: `matter ${tone}` }, el("p", { class: "words" }, words), go,
    heading ? el("a", { class: "guide", href: guideAt("runbook", heading), target: "_blank", rel: "noopener" }, "Runbook") : null,
    detail ? el("p", { class: "detail" }, detail) : null);
}

function reveal(at) {
  const place = document.querySelector(at);
  for (const one of place?.querySelectorAll("#troubled") ?? []) one.open = true;
  place?.scrollIntoView({ block: "center" });
  (place?.querySelector("button") ?? place)?.focus({ preventScroll: true });
}

/** Show which partitions are stopped, a row for each reason; nothing where none is. */
export function stops(status) {
  const found = status.partitions.flatMap((one) => one.stops);
  if (found.length === 0) return null;
  const alike = [...Map.groupBy(found, (one) => one.reason).values()];
  const columns = [
    ["Partitions", (group) => named(group, status.partitions.length)],
    ["Reason", ([one]) => el("span", { class: "badge bad" }, one.reason)],
    ["Since", (group) => ago(group.map((one) => one.stopped_at).sort()[0])],
    ["Attempts", (group) => count(Math.max(...group.map((one) => one.attempts))), "amount"],
    ["Detail", detailOf, "wide"],
  ];
  const still = idsOf(found).length;
  return card("Stopped partitions",
    el("p", { class: "bad", id: "stopped", tabindex: -1 }, still === 1 ? "1 partition is stopped: its events are neither read nor written."
      : `${count(still)} partitions are stopped: their events are neither read nor written.`),
    table("Stopped partitions", columns, alike));
}

/** The one error of the stops of a reason, or each with its partition. */
function detailOf(group) {
  if (group.length === 1) return group[0].detail;
  if (new Set(group.map(alikeIn)).size === 1) return `The same error: ${alikeIn(group[0])}`;
  return group.slice(0, SHOWN).map((one) => el("p", {}, `Partition ${one.partition_id}: ${alikeIn(one)}`));
}

/** The detail without the name of its partition. */
function alikeIn({ detail, partition_id: id }) {
  const [place, ...words] = (detail ?? "").split(": ");
  return place.endsWith(`/${id}`) ? words.join(": ") : detail ?? "";
}

function named(group, all) {
  const ids = idsOf(group);
  if (ids.length === all && all > SHOWN) return `all ${all}`;
  const more = ids.length > SHOWN ? `, and ${ids.length - SHOWN} more` : "";
  return `${ids.slice(0, SHOWN).join(", ")}${more}`;
}
