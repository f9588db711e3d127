// The first screen: what needs an operator, the balance of the ledger, lag and rate, and the partitions.

import { get, open, repeat, seldom } from "./api.js";
import { ago, badge, button, capital, card, clock, count, duration, el, facts, fault, grouped, inOrder, instant, isNarrow, letterAt, messageOf, needing, numbersOf,
  plural, positionOf, quiet, relative, renew, runbook, svg, table, taskAt, typeOf, wordOf } from "./dom.js";
import { runsOfApp, sizeOf } from "./runs.js";

const EVERY_MS = 2000;
const OUTCOMES = ["written", "filtered", "dead_lettered", "held", "absent"];
let details = { of: "", stops: [] };

export async function overview(place, left) {
  const lead = el("div", { "aria-live": "polite" });
  const [top, charts] = [1, 2].map(() => el("div", { class: "columns" }));
  const partitions = el("div", {});
  const minutes = minutesOfApp();
  const [summed, running, failing, isLasting] = [runsOfApp(), runningTasks(), newestLetters(), lasting()];
  place.append(el("h1", {}, "Overview"), lead, top, charts, partitions, auditing());
  await repeat(left, EVERY_MS, async () => {
    const [read, found, newest, tasks, letters] = await Promise.all([get("status"), minutes(), summed(), running(), failing()]);
    const status = await withDetails(read);
    if (left.aborted) return;
    needs(lead, status, { runs: newest, tasks, failing: letters, minutes: found.minutes, late: status.partitions.filter(isLasting(status)) });
    renew(top, balance(status, newest), lettersCard(status));
    renew(charts, ...overTime(found, status));
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

const NONE = "no error recorded"; // the reason of a partition that stands without a stop of the app; else the error of its batches
const reasonOf = (fault) => (fault?.startsWith("Store") ? "database" : fault?.startsWith("Hub") ? "hub" : fault ?? NONE);

/** Add the partitions that stand to the stops, and the details that quote errors, if the key may reveal them; each change
 * of the stops is one request. */
async function withDetails(status) {
  for (const { partition_id: id, since, fault } of status.standing) {
    const stops = status.partitions.find((one) => one.partition_id === id)?.stops;
    if (stops?.length === 0) stops.push({ partition_id: id, reason: reasonOf(fault), stands: true, stopped_at: since, detail: fault ?? "", failure: fault, letters: 0 });
  }
  const found = status.partitions.flatMap((one) => one.stops).filter((one) => one.detail === null);
  const now = JSON.stringify(found);
  if (found.length && now !== details.of) { details = { of: now, stops: (await get("revealed/stops").catch(() => ({ stops: [] }))).stops }; }
  for (const one of found) {
    const revealed = details.stops.find((stop) => stop.partition_id === one.partition_id && stop.reason === one.reason);
    one.detail = revealed?.detail ?? "hidden: the detail quotes an error";
  }
  return status;
}

const isEven = (status) => status.ledger_balanced && status.partitions.every((one) => one.balanced);

function balance(status, runs) {
  const even = isEven(status);
  const isEmpty = even && status.numbers === 0;
  return card("Ledger",
    isEmpty ? el("p", { class: "verdict", id: "verdict" }, "No event yet") : el("p",
      { class: `verdict ${even ? "good" : "bad"}`, id: "verdict" }, mark(even), even ? "Balanced" : `Not balanced: ${differing(status)}`),
    el("dl", { class: "proof" },
      proof("events read", status.numbers, "numbers"), proof("with an outcome", status.accounted, "accounted")),
    shares(status),
    quiet("Each event that was read needs exactly one of these outcomes. Held: it waits for an earlier letter of its key. Absent: the hub dropped it before it was read."),
    unknownFields(status.unknown_fields),
    status.without_key ? quiet(`The key of ${plural(status.without_key, "event")} could not be read. The partition key is used instead.`) : null,
    even && faulty(runs).length ? quiet("Each event has its outcome, but rows that events made can be missing all the same: see above.") : null);
}

/** Say how many events have no outcome, or how many outcomes are too many. Equal totals can hide wrong ranges. */
const differing = ({ numbers, accounted }) => (numbers > accounted ? `${plural(numbers - accounted, "event")} without an outcome`
  : numbers < accounted ? `${plural(accounted - numbers, "outcome")} too many` : "not one outcome for each event");

/** Say which fields of events the room does not know. */
function unknownFields(found) {
  if (found.length === 0) return null;
  const said = found.map((one) => `${one.name || "others"} in ${plural(one.events, "event")}`);
  return el("p", { class: "quiet", id: "unknown-fields" }, `Unknown fields, left out of the rows: ${said.join("; ")}. The events themselves were taken.`);
}

const proof = (term, value, id) => el("div", {}, el("dt", {}, term), el("dd", { id }, count(value)));

function mark(even) {
  const path = even ? "m9 17 5 5 10-11" : "M10 10l12 12M22 10 10 22";
  return svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true", fill: "none", stroke: "currentColor",
    "stroke-width": 3, "stroke-linecap": "round", "stroke-linejoin": "round" }, svg("circle", { cx: 16, cy: 16, r: 14, "stroke-width": 2 }), svg("path", { d: path }));
}

function shares(status) {
  const given = OUTCOMES.filter((name) => status[name] > 0);
  const bar = el("div", { class: "shares", "aria-hidden": "true" }, given.map((name) => {
    const part = el("span", { class: name });
    part.style.flexGrow = String(status[name]);
    return part;
  }));
  return [bar, el("ul", { class: "legend" }, OUTCOMES.map((name) => el("li", {}, el("i", { class: name }), `${count(status[name])} ${wordOf(name)}`)))];
}

function lettersCard(status) {
  const found = status.letters;
  const oldest = status.oldest_open_letter;
  return card("Dead letters",
    el("dl", { class: "proof" }, proof("open: events that failed, or are held behind one that did", found.open, "open-letters")),
    el("ul", { class: "legend" }, ["waiting", "retrying", "held", "exhausted"].map((word) =>
      el("li", {}, `${count(found[word])} ${word === "exhausted" && found[word] !== 1 ? "need you" : wordOf(word)}`))),
    el("p", { hidden: !oldest || !found.open }, oldest ? ["The oldest open letter failed ", ago(oldest.failed_at), ": ",
      el("a", { href: letterAt(oldest) }, `partition ${oldest.partition_id}, number ${grouped(oldest.sequence_number)}`)] : null), // a later one moves no focus
    forgets(status),
    quiet(`Settled so far: ${plural(found.settled, "letter")}, by a retry or discarded.`),
    el("p", {}, el("a", { href: "#/letters" }, "Show the letters")));
}

const isKept = ({ hub_forgets: hub }) => hub.loss_hours > hub.letters_expiring_hours; // the bodies of all open letters
export const isExpiring = (hub) => hub.loss_hours >= 0 && hub.loss_hours < 12 && !isKept({ hub_forgets: hub }); // before the morning

/** Say when the hub drops the first event of an open letter, and whether the event is lost then: not if its body is stored. */
function forgets(status) {
  const { letters: found, hub_forgets: hub, hub_forgets: { letters_expiring_hours: hours } } = status;
  const hasLeft = found.open > hub.events_lost && hours > 0;
  return el("p", { id: "hub-forgets", class: isKept(status) && !hub.events_lost ? "" : "bad", hidden: !hasLeft && !hub.events_lost },
    hasLeft ? isKept(status) ? `The hub holds the events of all open letters for ${duration(3600 * hours)}. After that they can still be retried: the app stores their bodies. `
      : `In ${duration(3600 * hub.loss_hours)} the hub drops the next event of which there is no copy: retry its letter before. ` : "",
    hub.events_lost ? `The hub has dropped ${plural(hub.events_lost, "event")} without a copy.` : "");
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
  return card("Audit", el("details", {}, el("summary", {}, "Look for events without an outcome"), el("p", { class: "quiet", id: "audit-words" },
    "An audit names each event without an outcome or with two. It changes nothing, and takes at most 20 s. With the rows it is a task that takes up to 5 min for each partition."),
  el("div", { class: "row actions" }, start, el("label", { class: "inline" }, rows, "the rows too: compare the ledger with your tables")), found));
}

function verdict(done) {
  if (!done.balanced) return `${plural(done.faults.length, "fault")} found.`;
  return done.complete ? `Balanced: ${count(done.accounted)} numbers, each with one outcome.`
    : `Not complete: ${count(done.accounted)} numbers without a fault.`;
}

function audited(done) {
  const columns = [["Partition", (one) => one.partition_id || "all"], ["What", (one) => badge(one.kind)], ["Numbers", numbersOf], ["Detail", (one) => one.detail, "wide"]];
  return el("div", {},
    el("p", { class: done.balanced && done.complete ? "good" : "bad" }, verdict(done)),
    done.complete ? null : el("p", {}, "The time was over before all ranges were read. Tick “the rows too”: a task has more time."),
    facts([["Read at", instant(done.at)], ["Partitions", count(done.partitions.length)]]),
    done.faults.length ? table("Faults", columns, done.faults) : null);
}

const LATE_SECONDS = 60;
const ALERT_SECONDS = 300; // as the alert `lag` by default
const FEW = 3; // partitions of a line that are named

// A reason of stops: what has happened, what to do, why then, and what else explains it.
const STOPS = {
  incarnation: ["the hub is another one", "Open the next incarnation of the stream, as the runbook says: that ends the stop.", "it does not end by itself"],
  outage: ["most events fail", "", "no rows are written"],
  store: ["the database refuses a batch", "Clear what the error names, such as a full log or a lock that somebody holds: the next batch that is written ends the stop.", "it does not end by itself"],
  trigger: ["the host delivers nothing", "The log of the host names the event that it cannot read.", "the app reads the events itself, once a minute"],
  erasure_key: ["the key of an erasure is missing", "Set `ERASURE_KEY_BEFORE` to the former key: older events then go on.", "older events wait", "Without this key the app cannot tell which older events an erasure covers. It writes newer events."],
  held: ["too many events wait for a letter", "", "it does not end by itself", "Events of one key keep their order: while a letter of the key is open, the app holds the later events."],
  database: ["the database does not answer", "Check that the database is up and takes writes, and that nobody holds a lock: the partition then goes on by itself.", "it may end by itself"],
  hub: ["the hub does not answer", "Check the hub's network, and the rights of the app to it: the partition then goes on by itself.", "it may end by itself"],
  [NONE]: ["no error is recorded", "Check in the settings of the function app whether functions are switched off, then its log.", "nothing is lost yet"],
};
const MANNER = { trigger: "read by the app's own reader", erasure_key: "read from newer events on" }; // others are not read

/** Return true if the patience of the fuse is used up: the partition goes on, and its failing events become letters. */
const isAccepting = (stop) => stop.patience > 0 && stop.attempts >= stop.patience;
const goesOn = (stop) => stop.reason in MANNER || isAccepting(stop);

/** Group stops that have one reason and one error, whatever the values in its message; the most partitions come first, then the longest stop. */
const alike = (stops) => [...Map.groupBy(stops, (one) => JSON.stringify(
  [one.reason, isAccepting(one), one.failure ?? alikeIn(one).replaceAll(/\d+/g, "…")])).values()].sort((one, other) => other.length - one.length || (firstOf(one) < firstOf(other) ? -1 : 1));

const firstOf = (group) => group.map((one) => one.stopped_at).sort()[0];
const sum = (group, name) => group.reduce((so, one) => so + one[name], 0);

/** Say what to repair: an error with a line of code comes from the code, or from its events. */
const repairOf = ({ failure }, { partitions }) => (!failure?.includes(" at ") ? "Repair what the events need, such as a table or a service."
  : partitions.every((one) => one.stops.length) ? "Suspect the last deployment, as no partition goes on: deploy the last version that worked. If the events are bad instead, do nothing: they become letters."
    : "Suspect what is sent to these partitions, as others go on. If the events are bad, do nothing: they become letters. Else deploy the last version that worked, or a corrected one.");

/** Return the matter of stops of one reason and one error; `failing` are the newest letters that need an operator. */
function stopOf(group, status, failing) {
  const [one] = group;
  const isAll = group.length === status.partitions.length;
  const [title, todo, why, fact = ""] = STOPS[one.reason] ?? [one.reason, one.stands ? STOPS[NONE][1] : "The runbook says what to do.", "events wait"]; // a fault without an entry is its own name
  const where = isAll ? `all ${group.length} partitions` : `partition${group.length === 1 ? "" : "s"} ${ranged(group)}`;
  const toLetters = [`#/letters?status=exhausted${group.length === 1 ? `&partition_id=${one.partition_id}` : ""}`, "Show the letters"];
  const tried = one.tried ? `${count(sum(group, "failed"))} of the ${plural(sum(group, "tried"), "event")} last tried fail, most with ${one.failure}.` : "";
  const own = { guide: one.reason in STOPS && one.reason !== NONE ? one.reason : one.stands ? "partition-stopped" : "stop-recorded", cause: isQuoted(one) ? quoteOf(one) : "" };
  if (isAccepting(one)) {
    const share = one.tried ? `${Math.round(100 * sum(group, "failed") / sum(group, "tried"))} % of the events` : "Most events";
    return { ...own, when: NOW, why: "rows are missing", words: `${share} of ${where} fail: they become letters`, at: ["They have failed since", firstOf(group)], go: toLetters,
      facts: `${tried} ${plural(sum(group, "letters"), "letter")} so far; events that succeed are written.`.trim(), todo: `${repairOf(one, status)} Then retry the letters: no event is lost meanwhile.` };
  }
  const isLong = one.stands && Date.parse(status.at) - Date.parse(firstOf(group)) > 1_800_000;
  const said = { ...own, why: isLong ? "it has not ended by itself" : why, words: `${namedOf(group)} ${MANNER[one.reason] ?? "stopped"}: ${title}`, go: [rowAt(group), group.length === 1 ? "Show the partition" : "Show the partitions"],
    when: one.reason === "trigger" ? MORNING : one.stands || one.reason === "erasure_key" ? TONIGHT : NOW,
    at: [one.reason in MANNER ? "In trouble since" : `No event${isAll ? "" : ` of ${where}`} has been written since`, firstOf(group)] };
  if (one.patience > 0) {
    const end = fuseEnd(group, Date.parse(status.at));
    return { ...said, facts: tried, todo: [`${repairOf(one, status)} ${group.length === 1 ? "The partition goes" : "The partitions go"} on once most events of a batch succeed.`,
      `If you do nothing: ${end - Date.parse(status.at) < 120_000 ? "in under two minutes" : `from about ${clock(end, false)} on`}, after ${one.patience} attempts (${attempts(group)} so far), failing events become letters. No event is lost, but rows are missing until you retry the letters.`] };
  }
  const left = one.reason in MANNER ? [] : [deadline(status, idsOf(group))];
  if (one.reason === "held") {
    const [ids, letters] = [idsOf(group), failing.filter((letter) => idsOf(group).includes(letter.partition_id))];
    const isOne = letters.length === 1 && failing.length >= status.letters.exhausted;
    const of = status.partitions.filter((each) => ids.includes(each.partition_id));
    return { ...said, cause: isOne ? messageOf(letters[0]) : "", go: isOne ? [letterAt(letters[0]), "Show the letter"] : toLetters, facts: `${fact} It holds ${plural(sum(of, "held"), "event")}${of.every((each) => each.lag !== null) ? `, and ${count(sum(of, "lag"))} more wait in the hub` : ""}.`,
      todo: [`Retry or discard ${isOne ? "the letter that they wait for" : `the letters of ${where} that need you`}, and leave the held ones alone. Discard only what can never succeed. Then ${group.length === 1 ? "the partition goes" : "the partitions go"} on.`, ...left] };
  }
  return { ...said, facts: `${fact} ${isQuoted(one) || !one.detail ? "" : `${capital(alikeIn(one))}.`}`.trim(), todo: [one.reason === "database" && status.partitions.some((each) => each.enqueued_at > firstOf(group)) ? "It writes other partitions, so it is up: look for a lock that somebody holds. Then the partition goes on by itself." : todo, ...left] };
}

/** Say when the hub drops the first event that waits in these partitions. */
function deadline({ hub_forgets: hub, partitions }, ids) {
  const kept = 3600 * Math.max(hub.letters_expiring_hours, hub.loss_hours);
  const left = kept - Math.max(0, ...partitions.filter((one) => ids.includes(one.partition_id)).map((one) => one.lag_seconds));
  return kept > 0 && left > 0 ? `Nothing is lost yet: in about ${duration(left)} the hub drops the first of the waiting events.` : "Nothing is lost while the hub holds the events.";
}

/** Estimate when the first of these partitions uses up its attempts: one in 10 s, or at the pace so far if that is slower. */
const fuseEnd = (group, now) => Math.min(...group.map(({ stopped_at: at, patience, attempts: made }) =>
  Date.parse(at) + patience * Math.max(10_000, (now - Date.parse(at)) / made)));

/** Name the attempts of stops: the least and the most. */
const attempts = (group) => [...new Set([Math.min, Math.max].map((of) => of(...group.map((one) => one.attempts))))].map(count).join(" to ");

/** Return the newest run of each aggregate, if its rows differ from the ledger. */
const faulty = (runs) => [...Map.groupBy(runs.filter((one) => one.quality), (one) => one.job).values()]
  .map(([newest]) => newest).filter((one) => one.quality.fault);

const WHEN = [["Act now", "bad"], ["Act tonight", "bad"], ["Can wait until morning", "warn"], ["Nothing to do", "calm"], ["", "good"]];
const [NOW, TONIGHT, MORNING, NEVER, WELL] = WHEN.keys(); // as the runbook's severities; a stop is grave with or without a reason

/** Return what there is to say, the gravest first: `words`, since when, the `facts` and the `cause` in the words of an error,
 * what to do, where the button goes, and the section of the runbook. */
function matters(status, { runs, tasks, failing, minutes, late }) {
  const stopped = status.partitions.flatMap((one) => one.stops);
  const found = alike(stopped).map((group) => stopOf(group, status, failing));
  const uneven = status.partitions.filter((one) => !one.balanced);
  if (status.hub_fault) {
    found.push({ when: TONIGHT, why: "nothing is lost yet", words: capital(hubTrouble(status.hub_fault)), guide: "hub", cause: status.hub_fault, facts: "New events wait in the hub, and the lag is unknown. Nothing is lost while the hub holds them.",
      todo: isBusy(status.hub_fault) ? "The app needs more of the hub than its throughput units allow: add units to its namespace in the Azure portal. The app tries again by itself."
        : "Check the hub's network, and the rights of the app to it. The app tries again by itself." });
  }
  if (!status.ledger_balanced || uneven.length) {
    const where = uneven.length === 1 ? ` in partition ${uneven[0].partition_id}` : uneven.length ? ` in ${plural(uneven.length, "partition")}` : "";
    found.push({ when: NOW, why: "rows may be wrong", words: `The ledger does not balance${where}`, guide: "ledger-unbalanced", go: ["[aria-label=Audit]", "Audit the ledger"],
      facts: `${capital(differing(status))}: its rows may be missing or double, and nothing repairs that by itself. Somebody has changed the ledger by hand, or the app has a fault, which could go on with other events.`, todo: "Audit the ledger: the audit names the event, changes nothing, and takes at most 20 s. The runbook says what comes then." });
  }
  const keys = status.lost_erasure_keys;
  if (keys.length) {
    const [since, people, waiting] = [instant(keys.map((one) => one.erased_at).sort().at(-1)).textContent, sum(keys, "subjects"), idsOf(stopped.filter((one) => one.reason === "erasure_key"))];
    found.push({ when: waiting.length ? TONIGHT : MORNING, why: waiting.length ? "events wait" : "no event waits yet", words: `The erasure key of ${people === 1 ? "a deleted person" : `${count(people)} deleted people`} is missing`, guide: "erasure_key",
      facts: `With this key the app recognises events of people whose data was deleted before ${since}. Until it has the key, it holds back every event from before then, also in retries and replays.${waiting.length ? ` Events of ${plural(waiting.length, "partition")} wait.` : ""}`,
      todo: ["Set `ERASURE_KEY_BEFORE` to the `ERASURE_KEY` of that time, in the settings of the function app: an older deployment or your key vault may have it.", "Nobody has the key any more? Type `bin/hubledger erase forget-key` in a checkout of the app, on a computer: it lists the data that could come back, and asks before it gives the key up for good."] });
  }
  const gaps = sum(status.partitions, "open_gaps");
  const { events_lost: gone, lost, loss_hours: left } = status.hub_forgets;
  const isWhole = failing.length >= status.letters.exhausted; // else more letters need an operator than were read
  const holding = isWhole ? idsOf(stopped.filter((one) => one.reason === "held")) : [];
  const lostLetters = sum(lost.filter((one) => one.kind !== "gap"), "events");
  const others = failing.filter((one) => !holding.includes(one.partition_id));
  const exhausted = Math.max(0, status.letters.exhausted - lostLetters - (failing.length - others.length)) - sum(stopped.filter(isAccepting), "letters"); // their own lines have them
  if (exhausted > 0) found.push(lettersOf(exhausted, others, isWhole, lostLetters, status, stopped));
  if (gone) {
    const places = lost.map((one) => `${one.kind === "gap" ? "a gap" : plural(one.events, "letter")} of partition ${one.partition_id} before sequence number ${grouped(one.before)}`);
    found.push({ when: TONIGHT, why: "their publisher may still have them", words: `${plural(gone, "event")} ${gone === 1 ? "is" : "are"} lost`, guide: "events-lost", go: [`#/letters?status=exhausted${lost.length === 1 ? `&partition_id=${lost[0].partition_id}` : ""}`, lost.length === 1 ? `Show the letters of partition ${lost[0].partition_id}` : "Show the letters"],
      facts: `The hub dropped ${gone === 1 ? "it before it was" : "them before they were"} retried, and the app has no copy: ${places.slice(0, FEW).join("; ")}${places.length > FEW ? "; and others" : ""}. The ledger balances all the same: a letter is an outcome.`,
      todo: `Take ${gone === 1 ? "the event" : "the events"} from Capture, the hub's copy in a storage account, or ask the publisher to send again. Then discard the letters that are marked as lost: no retry can help them.` });
  }
  for (const run of faulty(runs)) {
    found.push({ when: TONIGHT, why: "sums may be wrong", words: `${sizeOf(run.quality)}: do not rely on the sums of ${run.job.replace(/^rows\./, "")}`, guide: "aggregation-quality", go: ["[aria-label=Audit] label", "Audit the ledger and the rows"], also: [`#/runs/${encodeURIComponent(run.run_id)}`, "Show the run"],
      facts: `${capital(run.quality.fault)}. A run of ${instant(run.closed_at ?? run.planned_at).textContent} found it. Most likely somebody has deleted or added rows of a table by hand.`, todo: "Audit the ledger and the rows: the audit names the events to replay, and changes nothing." });
  }
  const slow = lagging(status, minutes, late.filter((one) => one.stops.length === 0), stopped.length > 0);
  if (slow) found.push(slow);
  if (gaps) {
    found.push({ when: NEVER, words: `${plural(gaps, "gap")} ${gaps === 1 ? "is" : "are"} open`, go: [rowAt(status.partitions.filter((one) => one.open_gaps)), "Show the partitions"],
      facts: `The app asks the hub once a minute for the events that are missing, and a gap closes by itself.${left < 0 ? "" : ` The hub holds them for at least ${duration(3600 * left)}.`}` });
  }
  if (tasks.length) found.push({ when: NEVER, words: `${plural(tasks.length, "task")} ${tasks.length === 1 ? "is" : "are"} running`, go: ["#/tasks", "Show the tasks"], facts: `${capital([...new Set(tasks.map((one) => one.kind))].join(", "))}.` });
  if (found.length === 0 && status.numbers) found.push({ when: WELL, words: "All is well" });
  return found.sort((one, other) => one.when - other.when);
}

/** Return the matter of letters that need an operator; `failing` are the newest of them, or all. */
function lettersOf(number, failing, isWhole, lost, status, stopped) {
  const { hub_forgets: { loss_hours: left }, oldest_open_letter: oldest } = status;
  const [isUrgent, isUnknown] = [isExpiring(status.hub_forgets), !isKept(status) && left < 0];
  const words = needing(number, !isUrgent && number < status.letters.exhausted ? "other letter" : "letter");
  const [common] = [...Map.groupBy(failing, failureOf).values()].sort((one, other) => other.length - one.length);
  const share = common?.length === failing.length ? "All" : common?.length * 2 > failing.length ? "Most" : "Some";
  const failure = common ? failureOf(common[0]) : "";
  const [isSame, isQuiet] = [stopped.some((one) => one.failure === failure), failing.length > 0 && Date.parse(status.at) - Date.parse(failing[0].failed_at) > 600_000];
  const repair = isSame ? "Retry them after the repair of the stop." : common?.[0].error_class === "poison" ? "The transform rejects these events. If they are bad, tell their publisher, and discard them. Else deploy a corrected transform, then retry them."
    : `${failure.includes(" at ") ? "It looks like a bug in your code: deploy a corrected version" : "Repair what the events need, such as a row or a table"}, then retry them. Discard only what can never succeed.`;
  const kept = isKept(status) ? "The app stores their bodies." : isUnknown ? "" : `The app does not store all of their bodies: in ${duration(3600 * left)} the hub drops the next event of which there is no copy.`;
  return { when: isUrgent ? TONIGHT : MORNING, why: isKept(status) ? "none is lost by waiting" : isUnknown ? "if the hub keeps their events until then" : isUrgent ? "" : `none is lost for ${duration(3600 * left)}`, guide: isUrgent ? "events-expiring" : "letters-open", go: ["#/letters?status=exhausted", "Show the letters"],
    words: isUrgent ? `${words}: the hub drops the next event at about ${clock(Date.parse(status.at) + 3_600_000 * left, false)}` : words, at: oldest ? ["The oldest failed at", oldest.failed_at] : null, newest: failing[0]?.failed_at, cause: common && !isSame ? messageOf(common[0]) : "",
    facts: `${common ? `${share}${isWhole ? "" : ` of the newest ${count(failing.length)}`} failed with ${failure}${isSame ? ", as in the stop above" : ""}. ` : ""}Letters are events that failed: their rows are missing, and the app has given up retrying them. ${kept}${lost ? ` Of ${plural(number + lost, "letter")}, ${count(number)} can be saved and ${count(lost)} are lost.` : ""}`,
    todo: [...(isQuiet && !isSame ? ["None has failed for ten minutes, so the cause may be gone: retry one letter, and if it is written, all.", `If it fails again: ${repair[0].toLowerCase()}${repair.slice(1)}`] : [repair]), ...(isUrgent ? ["If that takes longer, lengthen the hub's message retention in the Azure portal."] : isUnknown ? ["Set `HUB_RETENTION_HOURS` to the hub's retention: the app then says until when letters without a stored body can be retried."] : [])] };
}

const failureOf = (one) => `${typeOf(one)}${one.error_at ? ` at ${one.error_at}` : ""}`;

/** Return a reader of the newest letters that need an operator. */
const newestLetters = () => seldom(async (before) => (await get("dead-letters", { status: "exhausted", limit: 50 }).catch(() => ({ letters: before }))).letters, []);

const isBusy = (fault) => /ServiceBusy|throttl/i.test(fault);
const hubTrouble = (fault) => (isBusy(fault) ? "the hub throttles the app" : "the hub does not answer");

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
  return { lag: last.lag, climbs, written: last.rate ?? (last.accounted - first.accounted) / seconds, grows: (last.lag - first.lag) / seconds };
}

/** Return the line of late partitions, or of a lag that takes a minute to write, or ten seconds and grows each minute; null
 * without any. */
function lagging(status, minutes, late, isHindered) {
  const pace = paceOf(minutes);
  const isBehind = pace && !isHindered && Math.min(status.lag ?? 0, pace.lag) > (pace.climbs ? 10 : LATE_SECONDS) * pace.written;
  if (!late.length && !isBehind) return null;
  const longest = Math.max(0, ...late.map((one) => one.lag_seconds));
  const isGrowing = pace?.grows > pace?.written / 100;
  const words = late.length === 1 ? `Lag: partition ${late[0].partition_id} is late by ${duration(longest)}` : late.length ? `Lag: ${plural(late.length, "partition")} late, the longest by ${duration(longest)}` : `Lag: ${plural(roughly(status.lag), "event")} behind`;
  return { when: longest >= ALERT_SECONDS || isGrowing ? MORNING : NEVER, words, go: [rowAt(late), late.length === 1 ? "Show the partition" : "Show the partitions"], guide: "lag",
    facts: `${deadline(status, late.map((one) => one.partition_id))} ${isHindered ? "" : paceWords(pace, isGrowing)}`.trim(),
    todo: `If a worker is frozen, restart the workers, as the runbook says. Else ${late.length === 1 ? "this partition gets too many events of one key, or has an error: see the log" : "more events arrive than before: enlarge what the runbook names"}.` };
}

const rowAt = (ones) => (ones.length === 1 ? `#partition-${ones[0].partition_id}` : "[aria-label=Partitions]");

const roughly = (number) => Number(number.toPrecision(2)); // a line that changes is read aloud again

function paceWords(pace, isGrowing) {
  if (!pace) return "After two minutes of measurements this line says whether the lag grows.";
  const said = `In all partitions: ${perSecond(pace.written)} read, ${perSecond(Math.max(0, pace.written + pace.grows))} arriving. `;
  if (isGrowing) return `${said}The lag grows.`;
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
  const now = JSON.stringify([found.map((one) => ({ ...one, newest: null })), found.length ? null : status.lag]);
  const most = found.filter((one) => one.when < NEVER).length;
  const said = most > 1 ? `${most} things need you` : most ? "1 thing needs you" : "Nothing needs you";
  if (place.dataset.of !== now) {
    const placed = (at) => (most > 1 && at < most ? `${at + 1}. ` : "");
    renew(place, found.length && found[0].when !== WELL ? el("p", { class: "sum" }, said, asOf(), most > 1 ? ". Begin with the first." : ".") : null,
      el("div", { class: "lead" }, found.length ? found.map((one, at) => line(one, placed(at), at > 0 && found.length > 2 && one.when !== NOW)) : first(status)));
  }
  place.dataset.of = now;
  for (const node of place.querySelectorAll(".newest")) renew(node, ago(found.find((one) => one.newest)?.newest));
  for (const node of place.querySelectorAll(".as-of")) node.textContent = `, as of ${clock(status.at)}`;
}

const asOf = () => el("span", { class: "as-of", "aria-live": "off" }); // it changes, and is not read aloud

const first = (status) => el("div", { class: "matter" },
  el("p", { class: "words" }, "No event has arrived yet"),
  el("p", {}, "The app reaches its database and its hub", asOf(), `: the hub ${status.event_hub} answers with ${plural(status.partitions.length, "partition")}, and ${
    status.lag ? `${plural(status.lag, "event")} in it wait to be written, which takes some seconds.` : "no event waits there. An event shows here within seconds."}`),
  el("p", {}, coded(`Were events sent, and none arrives? Then they probably went to another hub: compare the namespace and the hub of their publisher with the app's settings \`EVENTHUB\` (the connection) and \`EVENTHUB_NAME\`. The app reads the hub \`${status.event_hub}\` as consumer group \`${status.consumer_group}\`.`)),
  el("details", {}, el("summary", {}, "Trying the app on your own machine?"), el("code", {}, "make run"), " brings its own events, and ", el("code", {}, "make run TRANSFORM=apps.orders EVENTS_FROM=events.jsonl"), " those of a file."));

/** Show a matter. Where it is folded, only its words show. */
function line({ when, why, words, go: [to, word] = [], also, guide, at, newest, facts, cause, todo }, place, isFolded) {
  const [said, tone] = WHEN[when];
  const go = to?.startsWith("#/") ? el("a", { class: "go", href: to }, word)
    : to ? el("button", { type: "button", class: "go", onclick: () => reveal(to) }, word) : null;
  const since = at ? [Date.now() - Date.parse(at[1]) > 72_000_000 ? instant(at[1]).textContent : clock(at[1]), " (", ago(at[1]), ")"] : null;
  const known = [at ? [at[0], " ", since, ". "] : null, newest ? ["The newest failed ", el("span", { class: "newest", "aria-live": "off" }), ". "] : null, facts];
  const body = [known.some(Boolean) ? el("p", {}, known) : null,
    cause ? el("p", {}, "Error: ", el("q", {}, cause.slice(0, 200))) : null, [todo ?? []].flat().map((text, index) => el("p", { class: "detail" }, index === 0 ? el("b", {}, "To do: ") : null, coded(text))),
    go || guide ? el("div", { class: "acts" }, go, also ? el("a", { href: also[0] }, also[1]) : null, guide ? runbook(guide) : null) : null];
  return el("div", { class: `matter ${tone}`, tabindex: -1 }, said ? el("p", { class: when === NOW ? "when now" : "when" }, place, said, why ? `: ${why}` : "") : null, el("p", { class: "words" }, words, said ? null : asOf()),
    isFolded ? el("details", {}, el("summary", {}, when < NEVER ? "What to do" : "More", at ? [" (since ", clock(at[1]), ", ", ago(at[1]), ")"] : null), body) : body);
}

/** Show what is between backticks as code. */
const coded = (text) => text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

/** Unfold a place of the page and show it. Run the audit if that is the place, with the rows if it is their label. */
function reveal(at) {
  const place = document.querySelector(at);
  (place?.closest("details") ?? place?.querySelector(":scope > details"))?.setAttribute("open", "");
  const audit = place?.closest("[aria-label=Audit]");
  if (audit) audit.querySelector("input").checked = place !== audit;
  audit?.querySelector("button").click();
  place?.scrollIntoView({ block: "center" });
  (audit ?? place)?.focus({ preventScroll: true });
}

const isQuoted = (one) => (one.stands || ["outage", "store"].includes(one.reason)) && one.detail; // others are the app's own words

/** The detail without the name of its partition; the error that it quotes, or all of it. */
const alikeIn = (one) => (one.detail ?? "").replace(new RegExp(`^[^:]*/${one.partition_id}: `), "");
const quoteOf = (one) => alikeIn(one).split("One of the errors: ").at(-1);

/** Name partitions in order, three or more in a row as a range. */
const ranged = (ones) => pieces(inOrder(ones).map((one) => ({ at: Number(one.partition_id), id: one.partition_id })), 1)
  .map((run) => (run.length > 2 ? `${run[0].id} to ${run.at(-1).id}` : run.map((one) => one.id).join(", "))).join(", ");

const most = () => (isNarrow() ? 3 : 8); // partitions in trouble that are not folded

/** List the troubles of a partition, the gravest first: [rank, words, tone]. A healthy partition has none. */
function troublesOf(one) {
  const isLate = one.lag_seconds >= ALERT_SECONDS;
  return [
    [0, one.stops.length ? `${!one.stops.every(goesOn) ? "stopped" : one.stops.some(isAccepting) ? "letters instead of rows" : "goes on in part"}: ${one.stops.map(({ reason }) => STOPS[reason]?.[0] ?? reason).join(", ")}` : "", "bad"],
    [1, one.balanced ? "" : differing(one), "bad"],
    [isLate ? 2 : 4, one.lag_seconds >= LATE_SECONDS ? `late by ${one.lag_seconds < 120 ? "over a minute" : duration(one.lag_seconds)}` : "", isLate ? "warn" : ""],
    [3, one.open_gaps ? plural(one.open_gaps, "open gap") : "", ""], // it heals by itself
  ].filter(([, words]) => words);
}

function byPartition(status) {
  const now = Date.parse(status.at);
  const end = (one) => [grouped(one.hub_end), // it may have been read before the checkpoint advanced
    one.hub_end !== null && one.checkpoint !== null && BigInt(one.hub_end) < BigInt(one.checkpoint) ? el("span", { class: "quiet" }, ` read ${relative(status.hub_read_at, now)}`) : null];
  const columns = [
    ["Partition", (one) => el("span", { class: one.partition_id.length < 20 ? "whole" : null, id: one.isJoined ? null : `partition-${one.partition_id}`, tabindex: -1 }, one.partition_id)],
    ["Checkpoint", (one) => (one.isJoined ? "–" : grouped(one.checkpoint ?? null)), "amount minor"],
    ["Hub's end", (one) => (one.isJoined ? "–" : end(one)), "amount minor"], ["Lag", (one) => count(one.lag), "amount"],
    ["Late by", (one) => duration(one.lag_seconds), "amount"],
    ["Open gaps", (one) => count(one.open_gaps ?? 0), "amount"], ["Outcomes", (one) => el("span", { class: "whole" }, `${count(one.accounted)} of ${count(one.numbers)}`), "amount minor"],
    ["Dead-lettered", (one) => count(one.dead_lettered), "amount minor"],
  ];
  const trouble = ["Trouble", (one) => troublesOf(one).map(([, words, tone]) => [el("span", { class: `badge ${tone}` }, words), " "]), "wide"];
  const inTrouble = [columns[0], trouble, ...columns.slice(1)];
  const rank = (one) => troublesOf(one)[0][0];
  const [bad, healthy] = [true, false].map((isBad) => status.partitions.filter((one) => (troublesOf(one).length > 0) === isBad));
  bad.sort((one, other) => rank(one) - rank(other) || troublesOf(other).length - troublesOf(one).length || Math.round(other.lag_seconds / 60) - Math.round(one.lag_seconds / 60)); // then by partition
  const rows = [...Map.groupBy(bad, (one) => JSON.stringify(troublesOf(one))).values()].map((group) => (group.length > 1 ? joined(group) : group[0]));
  const [shown, isJoined] = [rows.slice(0, most()), rows.length < bad.length];
  const left = isJoined ? bad : bad.filter((one) => !shown.includes(one));
  return card("Partitions", status.partitions.length ? null : el("p", {}, "Nothing is committed yet."),
    el("div", {}, bad.length ? table("Partitions in trouble", inTrouble, shown) : null),
    folded("troubled", isJoined ? `The ${plural(left.length, "partition")} in trouble, one by one` : `${plural(left.length, "more partition")} in trouble`, "More partitions in trouble", inTrouble, left),
    folded("healthy", `${plural(healthy.length, "partition")} ${status.numbers ? "read on time" : "without an event yet"}`, "Partitions", columns, healthy));
}

/** Join partitions that have the same trouble into one row. */
function joined(group) {
  return { ...group[0], ...Object.fromEntries(["open_gaps", "accounted", "numbers", "dead_lettered", "lag"].map((name) => [name, sum(group, name)])),
    isJoined: true, partition_id: ranged(group), ...(group.every((one) => one.lag !== null) ? { lag_seconds: Math.max(...group.map((one) => one.lag_seconds)) } : { lag: null }) };
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
function overTime({ minutes, fault }, { lag, hub_fault: trouble }) {
  const points = (name) => minutes.filter((one) => one[name] !== null) .map((one) => ({ at: Date.parse(one.at), value: one[name] }));
  const lags = points("lag"); const rates = points("rate");
  const isLate = minutes.length > 0 && Date.now() - Date.parse(minutes.at(-1).at) > BREAK_MS;
  const late = isLate ? el("p", { class: "fault", id: "late-watch" }, "The app measures lag and rate once a minute, but did so last ", ago(minutes.at(-1).at), ".") : null;
  const faulty = fault ? el("p", { class: "quiet", id: "minutes-fault" }, `The minutes were not read: ${fault}`) : null;
  const none = lags.length || lag === null ? null : quiet("The chart begins when the app has measured a minute.");
  const rate = rates.length && !isLate ? `${perSecond(rates.at(-1).value)} read in the last minute` : minutes.length ? `Rate unknown since ${clock(minutes.at(-1).at, false)}` : "No rate yet";
  return [
    card("Lag", el("p", { class: "now lag" }, lag === null ? `Lag unknown: ${hubTrouble(trouble)}` : `${plural(lag, "event")} behind`),
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
  const place = ({ at, value }) => `${((at - from) / Math.max(1, to - from) * WIDTH).toFixed(1)},${(HEIGHT - value / top * HEIGHT).toFixed(1)}`;
  const lines = pieces(points, apart).map((piece) => svg("polyline", { class: name, points: [...piece, piece.at(-1)].map(place).join(" ") })); // one point is a dot
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
