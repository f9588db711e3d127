// Replays: choose a range, see in a dry run what would change, then replay it for good and follow the progress.

import { confirm, get, isRefusal, open, Problem } from "./api.js";
import { badge, button, capital, card, choice, count, el, fault, field, formCard, grouped, inOrder, ledgerAt, numbersOf, plural, positionOf, quiet, renew,
  table, taskAt } from "./dom.js";

// How a range is named: the words, and the attributes of the fields for its ends.
const WAYS = { "": ["everything committed", {}], sequence_number: ["by sequence number", { inputmode: "numeric", type: "text" }],
  enqueued_at: ["by enqueued time (UTC)", { type: "datetime-local", step: 1 }], offset: ["by offset", { type: "text" }] };
const SUMMED = 5; // pages of events whose changes are summed by column
const READ = 100; // events of a page of the app
const PAGE = 50; // events whose changes are listed

/** The form of a new replay; an address may fill it in. */
export function newReplay(asked, isAsked) {
  const way = choice("way", Object.entries(WAYS).map(([name, [words]]) => [name, words]), asked.get("first") ? "sequence_number" : "");
  const first = el("input", { name: "first", size: 20, value: asked.get("first") ?? "", autocomplete: "off" });
  const last = el("input", { name: "last", size: 20, value: asked.get("last") ?? "", autocomplete: "off" });
  const partitions = el("input", { name: "partitions", size: 14, value: asked.get("partition") ?? "", autocomplete: "off", placeholder: "all" });
  const keys = el("textarea", { name: "keys", rows: 1, cols: 24, autocomplete: "off", placeholder: "all" });
  const reason = el("input", { name: "reason", size: 40, required: true, minlength: 3, maxlength: 400, autocomplete: "off" });
  const trouble = el("div", {});
  const ends = [field("From", first), field("to", last)];
  const fit = (clears) => {
    const [, attributes] = WAYS[way.value];
    for (const [at, input] of [first, last].entries()) {
      if (clears) input.value = "";
      input.removeAttribute("step");
      for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
      ends[at].hidden = way.value === "";
    }
  };
  way.addEventListener("change", () => fit(true));
  fit(false);
  const start = async (event) => {
    event.preventDefault();
    try {
      const values = [way, first, last, partitions, keys, reason].map((input) => input.value);
      location.hash = taskAt(await open("replay", order(...values)));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      trouble.replaceChildren(fault(problem));
    }
  };
  return formCard("New replay", "Run the transform again on events of the past", isAsked, quiet("It begins with a dry run, which changes nothing: it shows what a replay would change. Then you decide."),
  el("form", { class: "row", onsubmit: start }, field("Partitions, separated by commas", partitions),
    field("Range", way), ends, field("Partition keys, one a line", keys), field("Why? It is stored with the task.", reason),
    el("button", { class: "main" }, "Dry run")), trouble);
}

function order(way, first, last, partitions, keys, reason) {
  const ids = partitions.split(",").map((id) => id.trim()).filter(Boolean);
  const named = keys.split("\n").filter(Boolean);
  const place = (value) => {
    const given = value.trim();
    if (way === "enqueued_at") return { enqueued_at: /(Z|[+-]\d\d:\d\d)$/.test(given) ? given : `${given}Z` };
    return { [way]: way === "sequence_number" ? given.replaceAll(",", "") : given };
  };
  return { dry_run: true, reason: reason.trim(), ...(ids.length ? { partitions: ids } : {}),
    ...(named.length ? { keys: named } : {}),
    ...(way && first.trim() ? { from: place(first) } : {}), ...(way && last.trim() ? { to: place(last) } : {}) };
}

export const replay = {
  stays: "the events that it replayed stay replayed",
  unit: "event",
  name: () => "Replay", which: (found) => (found.partitions.length === 1 ? `partition ${found.partitions[0].partition_id}` : plural(found.partitions.length, "partition")),
  title: (found) => (found.dry_run ? "Dry run" : found.ended_at ? "Result" : "Replay"),
  says,
  done: (found) => `${count(found.done)} of ${plural(found.total, "event")}`,
  status: (found) => (found.status === "done" && !found.dry_run && found.counts.dead_lettered ? found.counts.letters_added ? `done, ${plural(found.counts.letters_added, "new letter")}` : `done; ${plural(found.counts.dead_lettered, "letter")} as before` : found.status),
  result: (found) => (found.status !== "done" ? `stopped after ${replay.done(found)}` : found.dry_run ? `${plural(found.counts.events, "event")}: ${found.counts.events_changed ? `${count(found.counts.events_changed)} would change` : "would change nothing"}` : replayed(found.counts)),
  facts: (found) => [outcomes(found.counts), effects(found), ...(found.keys ? [byKey(found)] : []), [["Transform", found.transform_version],
      ...found.partitions.filter((one) => one.transform_versions.length > 1)
        .map((one) => [`Transforms of partition ${one.partition_id}`, one.transform_versions.join(", ")])]],
  notes: (found) => [failing(found), el("p", { class: "quiet" }, found.status === "done" ? found.dry_run ? `Nothing has been changed. ${changes(found.counts)
    ? "If this is what you expect, replay it: then the changes are written." : "A replay would change nothing, so there is nothing to do."} ` : "A replay writes every row of its events again, changed or not: so it writes more rows than its dry run found to change. " : "",
  `Scope: ${scopeOf(found)}. `, found.left_out.map((one) => `Partition ${one.partition_id}: ${one.why}. `),
    found.keys && found.status === "done" && !found.counts.events ? "No event of the range has one of these partition keys." : "")],
  actions: (found) => (found.dry_run && found.status === "done" && changes(found.counts)
    ? button(`Replay ${plural(found.keys ? found.counts.events : found.total, "event")} …`, () => commit(found), { class: "main", id: "commit" }) : null),
  more: (found) => (found.partitions.length > 1 || found.partitions.some((one) => one.gone.length || one.note || one.transform_versions.length > 1) ? [ranges(found)] : []),
  follow: async (place, found, shown) => {
    const state = `${found.status} ${found.done}`;
    if (!found.dry_run || state === shown.state) return; // the differences are shown again when the dry run has advanced
    shown.state = state;
    await differences(place, found.task_id);
  },
};

/** Say which events give no rows, and lead to their letters. */
const failing = ({ counts: { dead_lettered: failed, letters_added: added, events_changed: changed }, partitions, dry_run: isDry }) => (failed ? el("p", { id: "failing" }, `${added || !changed ? plural(failed, "event") : plural(failed, "other event")} of the range ${added ? "" : "still "}cannot be written. `,
  added ? `${count(added)} ${isDry ? "would be" : added === 1 ? "is" : "are"} newly a letter: look at the transform. ` : `${failed === 1 ? "It was a letter" : "They were letters"} before: nothing new is wrong. `,
  el("a", { href: partitions.length === 1 ? `#/letters?partition_id=${encodeURIComponent(partitions[0].partition_id)}` : "#/letters" }, "See the letters")) : null);

/** Name the events of a replay: its partitions, their numbers, and its keys. */
function scopeOf({ partitions, keys }) {
  const where = partitions.length === 1 ? `partition ${partitions[0].partition_id}, sequence numbers ${numbersOf(partitions[0])}`
    : `${plural(partitions.length, "partition")} (${inOrder(partitions).map((one) => one.partition_id).join(", ")})`;
  return `${where}${keys ? `, ${plural(keys, "partition key")}` : ""}`;
}

const LETTERS = { letters_resolved: ["letter", "resolved"], letters_added: ["letter", "added"] };
const WOULD = { rows_added: ["row", "added"], rows_changed: ["row", "changed"], rows_removed: ["row", "removed"], ...LETTERS };
const replayed = ({ events, dead_lettered: failed }) => `${failed ? `${count(events - failed)} of ` : ""}${plural(events, "event")} replayed`;

/** Say in a sentence what a replay that is over has changed, or a dry run would change. */
function says(found) {
  const { counts, dry_run: isDry, status } = found;
  const more = counts.rows_written - counts.rows_retracted;
  const rows = isDry || !(counts.rows_written || counts.rows_retracted) ? [] : [`${plural(counts.rows_retracted, "row")} replaced by ${count(counts.rows_written)}${more ? ` (${count(Math.abs(more))} ${more > 0 ? "more" : "fewer"})` : ""}`];
  const done = [...rows, ...Object.entries(isDry ? WOULD : LETTERS).filter(([name]) => counts[name]).map(([name, [noun, word]]) => `${plural(counts[name], noun)} ${word}`)];
  const said = isDry ? `${done.length ? count(counts.events_changed) : "none"} of ${plural(counts.events, "event")} would change` : replayed(counts);
  const gone = counts.gone ? ` ${plural(counts.gone, "number")} left out: neither the hub nor a letter has the event.` : "";
  return `${status === "done" ? capital(said) : `Before it ended, ${said}`}${done.length ? `: ${done.join(", ")}` : ""}.${gone}`;
}

/** Return true if a replay would change something. */
const changes = (counts) => ["events_changed", "rows_added", "rows_removed", "rows_changed", "letters_added", "letters_resolved"]
  .some((name) => counts[name] > 0);

const outcomes = (counts) => [["Events with rows", count(counts.written)], ["Events filtered out", count(counts.filtered)],
  ["Events that fail", count(counts.dead_lettered)], counts.held ? ["Events held", count(counts.held)] : null,
  ["Gone from the hub", count(counts.gone)], ["Letters resolved", count(counts.letters_resolved)], ["Letters added", count(counts.letters_added)]];

const byKey = (found) => [["Partition keys", count(found.keys)], ["Events of other keys, left alone", count(found.other_keys)]];

const effects = ({ counts, dry_run: isDry }) => (isDry ? [["Events that change", count(counts.events_changed)], ["Rows added", count(counts.rows_added)],
    ["Rows removed", count(counts.rows_removed)], ["Rows changed", count(counts.rows_changed)]]
  : [["Rows written", count(counts.rows_written)], ["Earlier rows replaced", count(counts.rows_retracted)]]);

/** Show the progress of each partition, and the numbers that the hub no longer has. */
function ranges(job) {
  const columns = [["Partition", (one) => one.partition_id], ["Sequence numbers", numbersOf, "wide"],
    ["Progress", (one) => (one.closed_at ? badge(one.counts.dead_lettered ? `done, ${count(one.counts.dead_lettered)} fail` : "done") : one.next === one.first ? "no event yet" : `before ${grouped(one.next)}`)],
    ["With rows", (one) => plural(one.counts.written, "event"), "amount"], ["Failing", (one) => plural(one.counts.dead_lettered, "event"), "amount"],
    ["Lost from the hub", (one) => (one.gone.length ? one.gone.map((span) => (span.first === span.last ? grouped(span.first)
      : numbersOf(span))).join(", ") : "none"), "wide"]];
  return card("By partition", table("Ranges", columns, inOrder(job.partitions)), job.partitions.filter((one) => one.note).map((one) => el("p", { class: "quiet" },
      `Partition ${one.partition_id}: ${one.note}`)));
}

/** Replay the range of the dry run for good: one partition by its numbers, several as they were requested. */
function commit(job) {
  const order = job.partitions.length === 1 ? byNumbers(job.partitions[0])
    : Object.fromEntries(Object.entries(job.asked).filter(([, value]) => value !== null));
  const grows = job.partitions.length > 1 && !job.asked.to;
  const id = crypto.randomUUID();
  let made = null;
  return confirm({ title: "Replay", word: "Replay", number: job.keys ? job.counts.events : job.total,
    text: (number) => `${plural(number, "event")} will be replayed; in the dry run ` + `the rows of ${plural(job.counts.events_changed, "event")} changed.`
      + (grows ? " Events that were committed since the dry run will be replayed too." : ""), act: async (_, reason) => {
      made = await open("replay", { ...order, ...await keysOf(job), dry_run: false, reason }, id);
      return "The replay has begun";
    } }).then((done) => { if (done) location.hash = taskAt(made); });
}

/** Return the partition keys of a replay by key; only its diff names them. */
const keysOf = async (job) => (job.keys ? { keys: (await get(`tasks/${encodeURIComponent(job.task_id)}/diff`, { limit: 1 })).keys } : {});

const byNumbers = (one) => ({ partitions: [one.partition_id], from: { sequence_number: one.first }, to: { sequence_number: one.last } });

/** Read some pages of events that change: { events, next }. */
async function changed(id, cursor) {
  const found = { events: [], next: cursor };
  for (let read = 0; read < SUMMED && found.next !== null; read += 1) {
    const page = await get(`tasks/${encodeURIComponent(id)}/diff`, { limit: READ, cursor: found.next });
    found.events.push(...page.events);
    found.next = page.next;
  }
  return found;
}

async function differences(place, id, cursor = "", from = 0) {
  let page;
  try {
    page = await changed(id, cursor);
  } catch (problem) {
    if (!isRefusal(problem)) throw problem;
    renew(place, card("What would change", el("p", { id: "hidden-changes" }, "Hidden: the changes quote events, and this key or account may not reveal them.")));
    return;
  }
  const rows = (word, changed) => changed.map((one) => change(word, one));
  const columns = [["Position", (one) => el("a", { href: ledgerAt(one) }, positionOf(one))], ["Outcome", (one) => badge(one.outcome)],
    ["Rows", (one) => [rows("added", one.added), rows("removed", one.removed), rows("changed", one.changed),
      one.error ? el("span", { class: "error" }, one.error) : null], "wide"]];
  const listed = page.events.slice(from, from + PAGE);
  if (!listed.length) return renew(place);
  renew(place, card("What would change", summed(page.events, !cursor && !page.next),
    el("details", {}, el("summary", {}, "Event by event"), table("Differences", columns, listed), el("div", { class: "row" },
      from ? button("Earlier", () => differences(place, id, cursor, from - PAGE)) : null,
      from + PAGE < page.events.length ? button("More", () => differences(place, id, cursor, from + PAGE))
        : page.next ? button("More", () => differences(place, id, page.next)) : null))));
}

/** Sum the changes of these events by table and column: how many rows, and one of them before and after. */
function summed(events, isAll) {
  const lines = new Map();
  const note = (name, column, before, after) => {
    const line = lines.get(`${name} ${column}`) ?? { name, column, rows: 0, before, after };
    line.rows += 1;
    lines.set(`${name} ${column}`, line);
  };
  for (const one of events) {
    for (const row of one.added) note(row.table, "whole rows, added", ABSENT, brief(row));
    for (const row of one.removed) note(row.table, "whole rows, removed", brief(row), ABSENT);
    for (const row of one.changed)
      for (const [column, [before, after]] of Object.entries(row.columns)) note(row.table, `column ${column}`, before, after);
  }
  const columns = [["Table", (one) => one.name], ["What changes", (one) => one.column, "wide"], ["Rows", (one) => count(one.rows), "amount"],
    ["For example", (one) => [one.before === ABSENT ? null : shown(one.before), one.before === ABSENT || one.after === ABSENT ? null : " → ", one.after === ABSENT ? null : shown(one.after)], "wide"]];
  const all = [...lines.values()].sort((one, other) => other.rows - one.rows);
  return [table("Changes by column", columns, all),
    isAll ? null : el("p", { class: "quiet", id: "summed-part" }, `Of ${plural(events.length, "event")} that ${events.length === 1
      ? "changes" : "change"}, and there are more.`)];
}

const brief = ({ row }) => Object.entries(row).slice(0, 4).map(([name, value]) => `${name} ${value}`).join(", ");

/** Show a row that changes: each column with its value before and after. */
function change(word, one) {
  const sides = { added: (value) => [ABSENT, value], removed: (value) => [value, ABSENT] };
  const columns = one.columns ? Object.entries(one.columns)
    : Object.entries(one.row).map(([name, value]) => [name, sides[word](value)]);
  return el("table", { class: "diff", "aria-label": `${word} ${one.table}` }, el("caption", {}, badge(word), " ", one.table),
    el("thead", {}, el("tr", {}, ["Column", "Before", "After"].map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, columns.map(([name, [before, after]]) => el("tr", {}, el("th", { scope: "row" }, name),
      el("td", { class: "before" }, shown(before)), el("td", { class: "after" }, shown(after))))));
}

const ABSENT = Symbol("no row");

/** Show the value of a column: a dash without a row, and null unlike the text "null". */
function shown(value) {
  if (value === ABSENT) return "–";
  if (value === null) return el("span", { class: "quiet" }, "null");
  return el("span", { class: "mono" }, typeof value === "object" ? JSON.stringify(value) : String(value));
}
