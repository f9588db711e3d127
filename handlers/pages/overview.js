// The first screen: what needs an operator, the balance of the ledger with the numbers that prove it, lag and rate, the partitions.

import { get, open, repeat } from "./api.js";
import { ago, badge, button, card, count, duration, el, facts, fault, instant, letterAt, numbersOf, plural, positionOf, renew, svg,
  table, taskAt, wordOf } from "./dom.js";
import { minutesOfApp, overTime } from "./history.js";
import { faulty, needs, stops } from "./needs.js";
import { byPartition } from "./partitions.js";
import { runsOfApp } from "./runs.js";

const EVERY_MS = 2000;
const OUTCOMES = ["written", "filtered", "dead_lettered", "held", "absent"];
let details = { of: "", stops: [] };

export async function overview(place, left) {
  const [lead, stopped] = [1, 2].map(() => el("div", { "aria-live": "polite" }));
  const [top, charts] = [1, 2].map(() => el("div", { class: "columns" }));
  const partitions = el("div", {});
  const trouble = el("div", {});
  const minutes = minutesOfApp();
  const summed = runsOfApp();
  place.append(el("h1", {}, "Overview"), trouble, lead, stopped, top, charts, partitions, auditing());
  await repeat(left, EVERY_MS, trouble, async () => {
    const [read, found, newest] = await Promise.all([get("status"), minutes(), summed()]);
    const status = await withDetails(read);
    if (left.aborted) return;
    trouble.replaceChildren();
    needs(lead, status, newest);
    renew(stopped, stops(status));
    renew(top, balance(status, newest), letters(status));
    renew(charts, ...overTime(found, status.lag));
    renew(partitions, byPartition(status));
    nameStream(status);
  });
}

/** Show the name of the stream in the header, and the links to the pages of the app's room. */
export function nameStream(status) {
  document.getElementById("stream").textContent = `${status.event_hub} · ${status.consumer_group}`
    + (status.incarnation > 1 ? ` · incarnation ${status.incarnation}` : "");
  const nav = document.querySelector("nav");
  for (const { name, title } of status.room_pages)
    if (!nav.querySelector(`[data-page="${name}"]`))
      nav.append(el("a", { href: `#/${name}`, "data-page": name, "data-room": "" }, title));
}

/** Add the details that quote errors to the stops, if the key may reveal them; each change of the stops is one request. */
async function withDetails(status) {
  const found = status.partitions.flatMap((one) => one.stops).filter((one) => one.detail === null);
  const now = JSON.stringify(found);
  if (found.length && now !== details.of) {
    details = { of: now, stops: (await get("revealed/stops").catch(() => ({ stops: [] }))).stops };
  }
  for (const one of found) {
    const revealed = details.stops.find((stop) => stop.partition_id === one.partition_id && stop.reason === one.reason);
    one.detail = revealed?.detail ?? "hidden: the detail quotes an error";
  }
  return status;
}

function balance(status, runs) {
  const even = status.ledger_balanced && status.partitions.every((one) => one.balanced);
  const isEmpty = even && status.numbers === 0;
  return card("Ledger",
    isEmpty ? el("p", { class: "verdict", id: "verdict" }, "No number yet") : el("p",
      { class: `verdict ${even ? "good" : "bad"}`, id: "verdict" }, mark(even), even ? "Balanced" : "Not balanced"),
    el("dl", { class: "proof" },
      proof("numbers up to the checkpoints", status.numbers, "numbers"),
      proof("accounted for", status.accounted, "accounted")),
    shares(status),
    unknownFields(status.unknown_fields),
    even && faulty(runs).length ? el("p", { class: "quiet" }, "This compares sequence numbers with outcomes. It does not compare rows.") : null,
    even ? null : el("p", {}, differing(status), "Press \"Audit it\" above: the audit names the ranges at fault."));
}

/** Say how many numbers have no outcome, or what is too many. Null when the totals agree and only ranges are wrong. */
function differing({ numbers, accounted }) {
  if (numbers === accounted) return null;
  return numbers > accounted ? `Without an outcome: ${plural(numbers - accounted, "number")}. ` : `Too many: ${plural(accounted - numbers, "outcome")}. `;
}

/** Say which fields of events the room does not know. */
function unknownFields(found) {
  if (found.length === 0) return null;
  const said = found.map((one) => `${plural(one.events, "event")} had ${one.name ? `the unknown field ${one.name}` : "other unknown fields"}`);
  return el("p", { class: "quiet", id: "unknown-fields" }, `${said.join("; ")}. The app ignored them.`);
}

const proof = (term, value, id) => el("div", {}, el("dt", {}, term), el("dd", { id }, count(value)));

function mark(even) {
  const path = even ? "m9 17 5 5 10-11" : "M10 10l12 12M22 10 10 22";
  return svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true", fill: "none", stroke: "currentColor",
    "stroke-width": 3, "stroke-linecap": "round", "stroke-linejoin": "round" },
  svg("circle", { cx: 16, cy: 16, r: 14, "stroke-width": 2 }), svg("path", { d: path }));
}

function shares(status) {
  const given = OUTCOMES.filter((name) => status[name] > 0);
  const bar = el("div", { class: "shares", "aria-hidden": "true" }, given.map((name) => {
    const part = el("span", { class: name });
    part.style.flexGrow = String(status[name]);
    return part;
  }));
  return [bar, el("ul", { class: "legend" }, OUTCOMES.map((name) =>
    el("li", {}, el("i", { class: name }), `${count(status[name])} ${wordOf(name)}`)))];
}

function letters(status) {
  const found = status.letters;
  const oldest = status.oldest_open_letter;
  return card("Dead letters",
    el("dl", { class: "proof" },
      el("div", {}, el("dt", {}, "open"), el("dd", { id: "open-letters" }, count(found.open)))),
    el("ul", { class: "legend" }, ["waiting", "retrying", "held", "exhausted", "settled"].map((word) =>
      el("li", {}, `${count(found[word])} ${word === "exhausted" && found[word] !== 1 ? "need you" : wordOf(word)}`))),
    el("p", { hidden: !oldest || !found.open }, oldest ? ["The oldest open letter failed ", ago(oldest.failed_at), ": ",
      el("a", { class: "whole", href: letterAt(oldest) }, positionOf(oldest))] : null), // a later one moves no focus
    forgets(status),
    el("p", {}, el("a", { href: "#/letters" }, "Show the letters")));
}

/** Say when the hub forgets the first event of an open letter, and which events are lost. */
function forgets({ letters: found, hub_forgets: hub }) {
  const expires = found.open > 0 && hub.letters_expiring_hours >= 0;
  return el("p", { id: "hub-forgets", class: hub.events_lost ? "bad" : "", hidden: !expires && !hub.events_lost },
    expires ? `The hub holds the events of all open letters for ${duration(3600 * hub.letters_expiring_hours)}. ` : "",
    hub.events_lost ? `It no longer holds ${plural(hub.events_lost, "event")} that nothing else has stored.` : "");
}

function auditing() {
  const found = el("div", { "aria-live": "polite" });
  const rows = el("input", { type: "checkbox" });
  const tell = (text) => found.replaceChildren(el("p", { class: "quiet" }, text));
  const start = button("Audit the ledger", async () => {
    start.disabled = true;
    tell("Reading the ranges…");
    try {
      if (rows.checked) location.hash = taskAt(await open("audit", { rows: true }));
      else found.replaceChildren(audited(await get("ledger/audit")));
    } catch (problem) {
      found.replaceChildren(fault(problem));
    }
    start.disabled = false;
  });
  return card("Audit", el("p", { class: "quiet", id: "audit-words" },
    "The audit checks the ranges and the letters. With the rows it runs as a task."),
  el("div", { class: "row actions" }, start, el("label", { class: "inline" }, rows, "the rows too")), found);
}

function verdict(done) {
  if (!done.balanced) return `${plural(done.faults.length, "fault")} found.`;
  return done.complete ? `Balanced: ${count(done.accounted)} numbers, each with one outcome.`
    : `Not complete: ${count(done.accounted)} numbers without a fault.`;
}

function audited(done) {
  const columns = [["Partition", (one) => one.partition_id || "all"], ["What", (one) => badge(one.kind)],
    ["Numbers", numbersOf], ["Detail", (one) => one.detail, "wide"]];
  return el("div", {},
    el("p", { class: done.balanced && done.complete ? "good" : "bad" }, verdict(done)),
    done.complete ? null : el("p", {}, "The time was over before all ranges were read. Tick “the rows too”: a task has more time."),
    facts([["Read at", instant(done.at)], ["Partitions", count(done.partitions.length)]]),
    done.faults.length ? table("Faults", columns, done.faults) : null);
}
