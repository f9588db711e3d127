// The first screen: what needs an operator, the balance of the ledger, lag and rate, and the partitions.

import { get, open, repeat, seldom } from "./api.js";
import { ago, badge, button, capital, card, clock, count, duration, el, facts, fault, grouped, instant, isNarrow, letterAt, numbersOf,
  plural, positionOf, quiet, relative, renew, svg, table, taskAt, wordOf } from "./dom.js";
import { guideAt } from "./guides.js";
import { runsOfApp } from "./runs.js";

const EVERY_MS = 2000;
const OUTCOMES = ["written", "filtered", "dead_lettered", "held", "absent"];
let details = { of: "", stops: [] };

export async function overview(place, left) {
  const [lead, stopped] = [1, 2].map(() => el("div", { "aria-live": "polite" }));
  const [top, charts] = [1, 2].map(() => el("div", { class: "columns" }));
  const partitions = el("div", {});
  const minutes = minutesOfApp();
  const [summed, running, isLasting] = [runsOfApp(), runningTasks(), lasting()];
  place.append(el("h1", {}, "Overview"), lead, stopped, top, charts, partitions, auditing());
  await repeat(left, EVERY_MS, async () => {
    const [read, found, newest, tasks] = await Promise.all([get("status"), minutes(), summed(), running()]);
    const status = await withDetails(read);
    if (left.aborted) return;
    needs(lead, status, { runs: newest, tasks, minutes: found.minutes, late: status.partitions.filter(isLasting(status)) });
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
    isEmpty ? el("p", { class: "verdict", id: "verdict" }, "No event yet") : el("p",
      { class: `verdict ${even ? "good" : "bad"}`, id: "verdict" }, mark(even), even ? "Balanced" : `Not balanced: ${differing(status)}`),
    el("dl", { class: "proof" },
      proof("events read", status.numbers, "numbers"),
      proof("with an outcome", status.accounted, "accounted")),
    shares(status),
    quiet("Each event that was read needs exactly one of these outcomes."),
    unknownFields(status.unknown_fields),
    status.without_key ? quiet(`The key of ${plural(status.without_key, "event")} could not be read. The partition key is used instead.`) : null,
    even && faulty(runs).length ? quiet("This counts outcomes of events, not rows of tables. The line above says which rows differ.") : null);
}

/** Say how many events have no outcome, or what is too many. The totals can agree, and only ranges be wrong. */
const differing = ({ numbers, accounted }) => (numbers > accounted ? `${plural(numbers - accounted, "event")} without an outcome`
  : numbers < accounted ? `${plural(accounted - numbers, "outcome")} too many` : "not one outcome for each event");

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
    el("dl", { class: "proof" }, proof("open: events that failed, not settled yet", found.open, "open-letters")),
    el("ul", { class: "legend" }, ["waiting", "retrying", "held", "exhausted"].map((word) =>
      el("li", {}, `${count(found[word])} ${word === "exhausted" && found[word] !== 1 ? "need you" : wordOf(word)}`))),
    el("p", { hidden: !oldest || !found.open }, oldest ? ["The oldest open letter failed ", ago(oldest.failed_at), ": ",
      el("a", { class: "whole", href: letterAt(oldest) }, positionOf(oldest))] : null), // a later one moves no focus
    forgets(status),
    quiet(`Settled so far: ${plural(found.settled, "letter")}, by a retry or discarded.`),
    el("p", {}, el("a", { href: "#/letters" }, "Show the letters")));
}

/** Say when the hub forgets the first event of an open letter, and whether the event is then lost: a stored body is not. */
function forgets({ letters: found, hub_forgets: hub }) {
  const [hours, isKept] = [hub.letters_expiring_hours, hub.loss_hours > hub.letters_expiring_hours];
  return el("p", { id: "hub-forgets", class: isKept && !hub.events_lost ? "" : "bad", hidden: !(found.open > 0 && hours > 0) && !hub.events_lost },
    found.open > 0 && hours > 0 ? `The hub holds the events of all open letters for ${duration(3600 * hours)}. ${isKept
      ? "The bodies of those that it forgets first are stored here: they can be retried later too. " : `An event that nothing else has stored goes in ${duration(3600 * hub.loss_hours)}: retry or heal it before. `}` : "",
    hub.events_lost ? `It no longer holds ${plural(hub.events_lost, "event")} that nothing else has stored.` : "");
}

function auditing() {
  const found = el("div", { "aria-live": "polite" });
  const rows = el("input", { type: "checkbox" });
  const tell = (text) => found.replaceChildren(quiet(text));
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
    "Names each event without an outcome or with two. Run it when the ledger does not balance, or after changes by hand. It only reads, for at most 20 s. With the rows it counts those of your tables too, as a task: up to 5 min for each partition."),
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

const LATE_SECONDS = 60;
const ALERT_SECONDS = 300; // as the alert `lag` by default
const FEW = 3; // partitions of a line that are named
const SHOWN = 8; // partitions of a row that are named

// A reason of stops: what it means, what to do, and when the stop ends.
const STOPS = {
  incarnation: "The hub is not the one that the stream was read from. Open the next incarnation of the stream, as the guide says: that ends the stop.",
  outage: "Repair what the events need, such as a table or a service, or deploy the last version that worked: the first batch in which most events succeed ends the stop.",
  store: "The database refuses one batch again and again, with the error in the table below. Clear what blocks it: the next batch that is written ends the stop.",
  trigger: "The host delivers no more events of this partition. The app's own reader brings it level once a minute, until the host delivers again.",
  erasure_key: "An erasure needs its key to tell which events are forgotten: set ERASURE_KEY_BEFORE. Events that reached the hub since are taken, and older ones wait.",
  held: "Too many events wait for an open letter of the same key. Retry or discard the letters that they wait for, never the held ones: the partition then goes on.",
};
const MANNER = { trigger: "read by the app's own reader", erasure_key: "read from newer events on" }; // others are not read

/** Return true if the patience of the fuse is used up: the partition goes on, and its failing events become letters. */
const isAccepting = (stop) => stop.patience > 0 && stop.attempts >= stop.patience;
const goesOn = (stop) => stop.reason in MANNER || isAccepting(stop);

/** Group stops that have one reason and one error, whatever the values in its message. */
const alike = (stops) => [...Map.groupBy(stops, (one) => JSON.stringify(
  [one.reason, isAccepting(one), one.failure ?? alikeIn(one).replaceAll(/\d+/g, "…")])).values()];

const sum = (group, name) => group.reduce((so, one) => so + one[name], 0);
const earliest = (group, name = "stopped_at") => instant(group.map((one) => one[name]).sort()[0]).textContent;

/** Say of stops of one reason and one error: the error and its share, since when, until when, and what to do. */
function stopWords(group, now) {
  const [one] = group;
  const said = one.tried ? `${count(sum(group, "failed"))} of ${plural(sum(group, "tried"), "event")} fail, most with ${one.failure}. ` : "";
  const since = `${said}Since ${earliest(group)}.`;
  if (isAccepting(one)) {
    return `${since} The ${plural(one.patience, "attempt")} of the fuse are used up, so failing events become letters now: ${count(sum(group, "letters"))} so far. ${STOPS.outage} Then retry the letters.`;
  }
  const until = one.patience > 0 ? ` Nothing is written while the app tries again, ${one.patience} times at most (the fuse), ${attempts(group)} so far. From about ${clock(fuseEnd(group, now), false)} on, failing events become letters instead.` : "";
  return `${since}${until} ${STOPS[one.reason] ?? ""}`;
}

/** Return about when the attempts of the fuse are used up first: they are 10 s apart, or as far as they were so far. */
const fuseEnd = (group, now) => Math.min(...group.map(({ stopped_at: at, patience, attempts: made }) =>
  Date.parse(at) + patience * Math.max(10_000, (now - Date.parse(at)) / made)));

/** Name the attempts of stops: the least and the most. */
const attempts = (group) => [...new Set([Math.min, Math.max].map((of) => of(...group.map((one) => one.attempts))))].map(count).join(" to ");

/** Return the newest run of each aggregate, if its rows differ from the ledger. */
const faulty = (runs) => [...Map.groupBy(runs.filter((one) => one.quality), (one) => one.job).values()]
  .map(([newest]) => newest).filter((one) => one.quality.fault);

const WHEN = [["Act now", "bad"], ["Act tonight", "bad"], ["Can wait until morning", "warn"], ["Nothing to do", "calm"], ["", "good"]];
const [NOW, TONIGHT, MORNING, NEVER, WELL] = WHEN.keys(); // as the runbook's severities

/** Return the lines, the gravest first: [when, words, where the button goes, its word, the section of the runbook, a detail]. */
function matters(status, { runs, tasks, minutes, late }) {
  const found = [];
  const stopped = status.partitions.flatMap((one) => one.stops);
  const uneven = status.partitions.filter((one) => !one.balanced);
  if (!status.ledger_balanced || uneven.length) {
    const where = uneven.length === 1 ? ` in partition ${uneven[0].partition_id}` : uneven.length ? ` in ${plural(uneven.length, "partition")}` : "";
    found.push([NOW, `The ledger does not balance${where}`, "[aria-label=Audit]", "Go to the audit", "ledger-unbalanced",
      `${capital(differing(status))}. The audit names the sequence numbers and what is wrong with them. Begin with it: it changes nothing.`]);
  }
  for (const group of alike(stopped)) {
    const [one] = group;
    const words = isAccepting(one) ? "in an outage: failing events become letters" : `${MANNER[one.reason] ?? "stopped by the app"}: ${one.reason}`;
    const way = isAccepting(one) || one.reason === "held" ? ["#/letters?status=exhausted", "Show the letters"] : ["#stopped", "Show the stop"];
    found.push([one.reason === "trigger" ? MORNING : NOW, `${namedOf(group)} ${words}`, ...way, one.reason in STOPS ? one.reason : "stop-recorded",
      stopWords(group, Date.parse(status.at))]);
  }
  const standing = status.standing.filter(({ partition_id: id }) => !stopped.some((one) => one.partition_id === id));
  for (const [fault, group] of Map.groupBy(standing, (one) => one.fault)) {
    const words = `${namedOf(group)} stopped by ${group.length === 1 ? "itself" : "themselves"}${fault ? `: ${fault}` : ""}`;
    found.push([TONIGHT, words, "[aria-label=Partitions]", "Show the partitions", "partition-stopped", `Events wait, no batch is committed since ${earliest(group, "since")}, and the app recorded no reason. Nothing is lost while the hub holds the events. ${
      fault ? `The last error is ${fault}. ` : ""}Check the database (errors that begin with Store), the hub (Hub), and the log of the app.`]);
  }
  const lost = status.lost_erasure_keys;
  if (lost.length) {
    const since = instant(lost.map((one) => one.erased_at).sort().at(-1)).textContent;
    found.push([TONIGHT, `The app lacks the key of ${plural(sum(lost, "subjects"), "erased subject")}`, null, "", "erasure_key", `Events from before ${since} wait for this key, and so do their retries and replays. Set the former ERASURE_KEY as ERASURE_KEY_BEFORE: this line then goes. If nobody has that key any more, type bin/hubledger erase forget-key: it first says what can come back.`]);
  }
  if (status.hub_fault) found.push([NOW, "The hub does not answer", null, "", "partition-stopped", `So the lag is unknown, and gaps and replays wait. Check the hub's network and the rights of the app. Error: ${status.hub_fault}`]);
  const gone = status.hub_forgets.events_lost;
  if (gone) {
    found.push([TONIGHT, `${plural(gone, "event")} ${gone === 1 ? "is" : "are"} lost`, "#/letters?status=exhausted", "Show the letters", "events-lost",
      "The hub no longer holds what an open letter without a body, or an open gap, needs. Restore the events from Capture, or have them sent again."]);
  }
  for (const run of faulty(runs)) {
    found.push([TONIGHT, `The rows of ${run.job.replace(/^rows\./, "")} differ from the ledger`, `#/runs/${encodeURIComponent(run.run_id)}`, "Show the run", "aggregation-quality",
      `${capital(run.quality.fault)}. Rows of a table were deleted or added by hand. The audit with the rows names the events to replay.`]);
  }
  const { exhausted } = status.letters;
  if (exhausted) {
    found.push([MORNING, `${plural(exhausted, "letter")} ${exhausted === 1 ? "needs" : "need"} you`, "#/letters?status=exhausted", "Show the letters", "letters-open",
      "A letter is an event that failed: its rows are missing, and nothing retries it by itself. Look at the causes. Retry the letters when the cause is mended, or discard them."]);
  }
  const hindered = [...stopped, ...standing];
  const slow = lagging(status, minutes, late.filter((one) => !hindered.some(({ partition_id: id }) => id === one.partition_id)), hindered.length > 0);
  if (slow) found.push(slow);
  const gaps = sum(status.partitions, "open_gaps");
  if (gaps) {
    const left = status.hub_forgets.loss_hours;
    found.push([NEVER, `${plural(gaps, "gap")} ${gaps === 1 ? "is" : "are"} open`, "[aria-label=Partitions]", "Show the partitions", "events-expiring",
      `Some events have not come yet, but later ones have. The app asks the hub for them once a minute, and a gap closes by itself.${left < 0 ? "" : ` The hub holds them for at least ${duration(3600 * left)}.`}`]);
  }
  if (tasks.length) {
    found.push([NEVER, `${plural(tasks.length, "task")} ${tasks.length === 1 ? "is" : "are"} running`, "#/tasks", "Show the tasks", null, `${capital([...new Set(tasks.map((one) => one.kind))].join(", "))}.`]);
  }
  if (found.length === 0 && status.numbers) found.push([WELL, "All is well"]);
  return found.sort(([one], [other]) => one - other);
}

/** Return a filter of partitions that are late, in this status and in the one before: an event that has just come to a
 * quiet partition is not late, although the partition's last event is old. */
function lasting() {
  let before = null;
  return ({ partitions }) => {
    const now = new Set(partitions.filter((one) => one.lag_seconds >= LATE_SECONDS).map((one) => one.partition_id));
    const lasts = before ?? now;
    before = now;
    return ({ partition_id: id }) => now.has(id) && lasts.has(id);
  };
}

const PACE_MS = 300_000;

/** Return the events that are written and that the lag grows by, each per second, over the last minutes that are known. */
function paceOf(minutes) {
  const last = minutes.at(-1);
  if (!last || Date.now() - Date.parse(last.at) > BREAK_MS) return null;
  const first = minutes.find((one) => Date.parse(last.at) - Date.parse(one.at) <= PACE_MS);
  const seconds = (Date.parse(last.at) - Date.parse(first.at)) / 1000;
  if (seconds < 60) return null;
  const lags = minutes.slice(minutes.indexOf(first)).map((one) => one.lag);
  const climbs = lags.length > 3 && lags.every((lag, at) => at === 0 || lag > lags[at - 1]);
  return { lag: last.lag, climbs, written: (last.accounted - first.accounted) / seconds, grows: (last.lag - first.lag) / seconds };
}

/** Return the line of late partitions, or of a lag that takes a minute to write, or ten seconds and grows each minute; null
 * without any. */
function lagging(status, minutes, late, isHindered) {
  const pace = paceOf(minutes);
  const isBehind = pace && !isHindered && Math.min(status.lag ?? 0, pace.lag) > (pace.climbs ? 10 : LATE_SECONDS) * pace.written;
  if (!late.length && !isBehind) return null;
  const longest = Math.max(0, ...late.map((one) => one.lag_seconds));
  const [isGrowing, at] = [pace?.grows > pace?.written / 100, ["[aria-label=Partitions]", "Show the partitions", "lag"]];
  const words = late.length === 1 ? `Lag: partition ${late[0].partition_id} is late by ${duration(longest)}`
    : late.length ? `Lag: ${plural(late.length, "partition")} late, the longest by ${duration(longest)}` : `Lag: ${plural(roughly(status.lag), "event")} behind`;
  return [longest >= ALERT_SECONDS || isGrowing ? MORNING : NEVER, words, ...at, `Events wait, and nothing is lost while the hub holds them. ${paceWords(pace, isGrowing)}`];
}

const roughly = (number) => Number(number.toPrecision(2)); // a line that changes is read aloud again

function paceWords(pace, isGrowing) {
  if (!pace) return "This line says whether the lag grows as soon as the app has measured two minutes.";
  const said = `Written: ${perSecond(pace.written)}. Arriving: ${perSecond(Math.max(0, pace.written + pace.grows))}. `;
  if (isGrowing) return `${said}The lag grows: it cannot be caught up at this rate. Act now if it nears the retention of the hub.`;
  return pace.grows < 0 ? `${said}The lag falls: level in about ${duration(roughly(pace.lag / -pace.grows))}.` : `${said}The lag stays.`;
}

/** Return a reader of the tasks that run. */
const runningTasks = () => seldom(async (before) => (await get("tasks", { status: "running", limit: 100 }).catch(() => ({ tasks: before }))).tasks, []);

const idsOf = (stops) => [...new Set(stops.map((one) => one.partition_id))];

/** Name partitions at the beginning of a sentence: a few by their ids, more by their count. */
function namedOf(stops) {
  const ids = idsOf(stops);
  return ids.length > FEW ? plural(ids.length, "partition") : `Partition${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
}

/** Fill a place with what needs an operator; else with "All is well", or how to send the first event. It is filled again
 * only when something has changed, so that it is read aloud once. */
function needs(place, status, seen) {
  const found = matters(status, seen);
  const [now, most] = [JSON.stringify([found, found.length ? null : status.lag]), found.filter(([when]) => when < NEVER).length];
  const said = most > 1 ? `${most} things need you` : most ? "1 thing needs you" : "Nothing needs you";
  if (place.dataset.of !== now) {
    place.replaceChildren(found.length && found[0][0] !== WELL ? el("p", { class: "sum" }, said, asOf(), most > 1 ? ". Begin with the first." : ".") : "",
      el("div", { class: "lead" }, found.length ? found.map((one, at) => line(one, most > 1 && at < most ? `${at + 1}. ` : "")) : first(status)));
  }
  place.dataset.of = now;
  for (const node of place.querySelectorAll(".as-of")) node.textContent = `, as of ${clock(status.at)}`;
}

const asOf = () => el("span", { class: "as-of", "aria-live": "off" }); // it changes, and is not read aloud

const first = (status) => el("div", { class: "matter" },
  el("p", { class: "words" }, "No event has arrived yet"),
  el("p", {}, "The connection works", asOf(), `: the hub ${status.event_hub} answers with ${plural(status.partitions.length, "partition")}, and ${
    status.lag ? `${plural(status.lag, "event")} in it wait to be written, which takes some seconds.` : "no event waits there. An event shows here within seconds."}`),
  el("p", {}, `Were events sent, and none arrives? Then they went to another hub: compare the namespace and the hub of their publisher with EVENTHUB and EVENTHUB_NAME of the app. It reads as consumer group ${status.consumer_group}.`),
  el("p", { class: "quiet" }, "On your own machine, ", el("code", {}, "make run"), " brings its own events, and ",
    el("code", {}, "make run TRANSFORM=apps.orders EVENTS_FROM=events.jsonl"), " those of a file."));

function line([when, words, to, word, heading, detail], place) {
  const [said, tone] = WHEN[when];
  const go = to?.startsWith("#/") ? el("a", { class: "go", href: to }, word)
    : to ? el("button", { type: "button", class: "go", onclick: () => reveal(to) }, word) : null;
  const guide = heading ? el("a", { class: "guide", href: guideAt("runbook", heading), target: "_blank", rel: "noopener" }, `Runbook: ${heading}`) : null;
  return el("div", { class: `matter ${tone}` }, said ? el("p", { class: "when" }, place, said) : null,
    el("p", { class: "words" }, words, said ? null : asOf()), detail ? el("p", { class: "detail" }, detail) : null,
    go || guide ? el("div", { class: "acts" }, go, guide) : null);
}

function reveal(at) {
  const place = document.querySelector(at);
  for (const one of place?.querySelectorAll("#troubled") ?? []) one.open = true;
  place?.scrollIntoView({ block: "center" });
  (place?.querySelector("button") ?? place)?.focus({ preventScroll: true });
}

/** Show which partitions are stopped, a row for each reason; nothing where none is. */
function stops(status) {
  const found = status.partitions.flatMap((one) => one.stops);
  if (found.length === 0) return null;
  const columns = [
    ["Partitions", (group) => named(group, status.partitions.length)],
    ["Reason", ([one]) => el("span", { class: "badge bad" }, one.reason)],
    ["Since", (group) => ago(group.map((one) => one.stopped_at).sort()[0])],
    ["Attempts", (group) => `${attempts(group)}${group[0].patience > 0 ? ` of ${group[0].patience}` : ""}`, "amount"],
    ["Letters since", (group) => count(sum(group, "letters")), "amount"],
    ["Detail", detailOf, "wide"],
  ];
  const still = idsOf(found.filter((one) => !goesOn(one))).length;
  const others = idsOf(found).length - still;
  return card("Stopped partitions",
    el("p", { class: "bad", id: "stopped", tabindex: -1 },
      still ? `${plural(still, "partition")} ${still === 1 ? "is stopped: none of its" : "are stopped: none of their"} events is written. ` : "",
      others ? `${plural(others, "partition")} ${others === 1 ? "goes" : "go"} on nevertheless: the lines above say how.` : ""),
    table("Stopped partitions", columns, alike(found)));
}

/** The error of stops, in the words of one of them. */
function detailOf(group) {
  const [one] = group;
  return group.length === 1 ? one.detail : `${new Set(group.map(alikeIn)).size === 1 ? "The same error" : `As in partition ${one.partition_id}`}: ${alikeIn(one)}`;
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

const most = () => (isNarrow() ? 4 : 8); // partitions in trouble that are not folded

/** List the troubles of a partition, the gravest first: [rank, words, tone]. A healthy partition has none. */
function troublesOf(one, standing) {
  return [
    [0, one.balanced ? "" : differing(one), "bad"],
    [1, one.stops.length ? `${one.stops.every(goesOn) ? "goes on" : "stopped"}: ${one.stops.map(({ reason }) => reason).join(", ")}`
      : standing.has(one.partition_id) ? "stopped by itself" : "", "bad"],
    [2, one.open_gaps ? plural(one.open_gaps, "open gap") : "", ""], // it heals by itself
    [3, one.lag_seconds >= LATE_SECONDS ? `late by ${duration(one.lag_seconds)}` : "", one.lag_seconds >= ALERT_SECONDS ? "warn" : ""],
  ].filter(([, words]) => words);
}

function byPartition(status) {
  const now = Date.parse(status.at);
  const end = (one) => [grouped(one.hub_end), // it may have been read before the checkpoint advanced
    one.hub_end !== null && one.checkpoint !== null && BigInt(one.hub_end) < BigInt(one.checkpoint) ? el("span", { class: "quiet" }, ` read ${relative(status.hub_read_at, now)}`) : null];
  const columns = [
    ["Partition", (one) => one.partition_id],
    ["Checkpoint", (one) => grouped(one.checkpoint ?? null), "amount minor"],
    ["Hub's end", end, "amount minor"],
    ["Lag", (one) => count(one.lag), "amount"],
    ["Late by", (one) => duration(one.lag_seconds), "amount"],
    ["Open gaps", (one) => count(one.open_gaps ?? 0), "amount"],
    ["Outcomes", (one) => `${count(one.accounted)} of ${count(one.numbers)}`, "amount"],
    ["Dead-lettered", (one) => count(one.dead_lettered), "amount minor"],
  ];
  const standing = new Set(status.standing.map((one) => one.partition_id));
  const trouble = ["Trouble", (one) => troublesOf(one, standing).map(([, words, tone]) => [el("span", { class: `badge ${tone}` }, words), " "])];
  const inTrouble = [columns[0], trouble, ...columns.slice(1)];
  const rank = (one) => troublesOf(one, standing)[0][0];
  const [bad, healthy] = [true, false].map((isBad) =>
    status.partitions.filter((one) => (troublesOf(one, standing).length > 0) === isBad));
  bad.sort((one, other) => rank(one) - rank(other)); // a stable sort: by partition within a rank
  return card("Partitions", status.partitions.length ? null : el("p", {}, "Nothing is committed yet."),
    el("div", {}, bad.length ? table("Partitions in trouble", inTrouble, bad.slice(0, most())) : null),
    folded("troubled", `${plural(bad.length - most(), "more partition")} in trouble`, "More partitions in trouble", inTrouble, bad.slice(most())),
    folded("healthy", `${plural(healthy.length, "partition")} read on time`, "Partitions", columns, healthy));
}

const folded = (id, words, label, columns, entries) => (entries.length
  ? el("details", { id }, el("summary", {}, words), table(label, columns, entries)) : null);

const MINUTES = 180;
const BREAK_MS = 150_000; // a line ends where no watch came for longer than this

/** Return a reader of the minutes; a fault is in `fault`, beside older minutes. */
const minutesOfApp = () => seldom(async ({ minutes }) => {
  try {
    return { minutes: (await get("status/history", { minutes: MINUTES })).minutes, fault: null };
  } catch (problem) {
    return { minutes, fault: problem.detail ?? String(problem) };
  }
}, { minutes: [], fault: null });

/** Return the panels of lag and rate over time; `lag` is that of this moment, null where the hub does not answer. */
function overTime({ minutes, fault }, lag) {
  const points = (name) => minutes.filter((one) => one[name] !== null)
    .map((one) => ({ at: Date.parse(one.at), value: one[name] }));
  const lags = points("lag");
  const rates = points("rate");
  const isLate = minutes.length > 0 && Date.now() - Date.parse(minutes.at(-1).at) > BREAK_MS;
  const late = isLate ? el("p", { class: "fault", id: "late-watch" }, "The watch stored the last minute ", ago(minutes.at(-1).at), ".") : null;
  const faulty = fault ? el("p", { class: "quiet", id: "minutes-fault" }, `The minutes were not read: ${fault}`) : null;
  const none = lags.length || lag === null ? null : quiet("The chart begins when the app has measured a minute.");
  const rate = rates.length && !isLate ? `${perSecond(rates.at(-1).value)} in the last minute` : minutes.length ? "rate unknown" : "No rate yet";
  return [
    card("Lag", el("p", { class: "now lag" }, lag === null ? "Lag unknown: the hub does not answer" : `${plural(lag, "event")} behind`),
      chart("lag", lags, count, BREAK_MS), none, late, faulty),
    card("Rate", el("p", { class: "now rate" }, rate), chart("rate", rates, perSecond, BREAK_MS)),
  ];
}

const perSecond = (rate) => `${count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))} events/s`;

const WIDTH = 600;
const HEIGHT = 150;

/** Draw [{at, value}] with axes: `words` writes a value; the line breaks between points that are further apart than
 * `apart`. Null without a point. */
function chart(name, points, words, apart = Infinity) {
  if (points.length === 0) return null;
  const [from, to] = [points[0].at, points.at(-1).at];
  const top = rounded(Math.max(1, ...points.map((point) => point.value)));
  const place = ({ at, value }) =>
    `${((at - from) / Math.max(1, to - from) * WIDTH).toFixed(1)},${(HEIGHT - value / top * HEIGHT).toFixed(1)}`;
  const lines = pieces(points, apart).map((piece) =>
    svg("polyline", { class: name, points: [...piece, piece.at(-1)].map(place).join(" ") })); // one point is a dot
  const view = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
  return el("figure", { class: "plot", role: "img", "aria-label": `${name}: at most ${words(top)}` },
    el("div", { class: "up" }, [top, top / 2, 0].map((value) => el("span", {}, words(value)))),
    svg("svg", { class: "chart", ...view },
      [0, 0.5, 1].map((share) => svg("line", { x1: 0, x2: WIDTH, y1: share * HEIGHT, y2: share * HEIGHT })), lines),
    el("div", { class: "across" }, [from, (from + to) / 2, to].map((at) => el("span", {}, clock(at, false)))));
}

/** The next number above that is 1, 2 or 5 times a power of ten. */
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function pieces(points, apart) {
  const found = [];
  for (const point of points) {
    if (found.length && point.at - found.at(-1).at(-1).at <= apart) found.at(-1).push(point);
    else found.push([point]);
  }
  return found;
}
