// The tasks of operators: the list, one task, and the words of each kind.

import { confirm, get, open, post, repeat, seldom, tried } from "./api.js";
import { ago, badge, button, capital, card, causeAt, choice, count, dated, duration, el, facts, fault, field, form, formCard, grouped, inOrder, instant, isNarrow,
  letterAt, matter, messageOf, mono, needing, pager, plural, positionOf, quiet, renew, table, taskAt, wordOf } from "./dom.js";
import { guideAt } from "./guides.js";
import { newReplay, replay } from "./replays.js";

/** Say which letters were chosen; a cause is a link, because its name is a hash. */
function chosenOf(found) {
  if (found.filter === null) return plural(found.total, "selected letter");
  const { fingerprint: cause, ...others } = found.filter;
  const said = Object.entries(others).map(([name, value]) => `${name.replace("partition_id", "partition").replaceAll("_", " ")} ${name.startsWith("failed") ? instant(value).textContent : wordOf(value)}`).join(", ");
  if (!cause) return said || "all letters";
  return [el("a", { href: causeAt(cause) }, "those of one cause"), said ? `, ${said}` : ""];
}

/** Say in a list, in few words, which letters were chosen; the groups of letters know the message of a cause. */
function whichOf({ filter, total, letters }, groups = []) {
  const found = groups.find((one) => one.fingerprint === filter?.fingerprint);
  const cause = found ? `cause: ${messageOf(found.sample, found.template ?? undefined)}` : filter?.fingerprint ? "one cause" : "";
  return filter === null ? total < 4 && letters?.length === total ? `letter${total === 1 ? "" : "s"} ${letters.map(positionOf).join(", ")}` : plural(total, "chosen letter") : [filter.partition_id ? `partition ${filter.partition_id}` : "", cause].filter(Boolean).join(", ") || "all letters";
}

/** Count the newest retries that did not help, up to one that did, or is not over. */
export const vainOf = (tasks) => [...tasks.filter((one) => one.move === "retry" && one.outcome), {}].findIndex((one) => one.outcome?.result !== "did_not_help");

// A count is not green when it is done: the work may be still to do.
const counting = (found) => (found.dry_run && found.status === "done" ? "counted" : found.status);
const isTrying = (found) => found.outcome?.result === "not_tried";

/** Say what became of the letters that a redrive moved. */
function movedWords({ move, moved, total, outcome }) {
  if (move === "discard") return moved === total ? `${plural(total, "letter")} discarded for good.` : `${count(moved)} of ${plural(total, "letter")} discarded for good.`;
  return `${outcome && outcome.letters < moved ? `Of ${plural(outcome.letters, "letter")}: ` : ""}${outcome ? outcome.words : "no letter tried again"}.`;
}

/** Say what to do after letters failed again. */
const adviceOf = ({ move, status, outcome, filter, came_later: later }) => {
  const href = filter?.fingerprint ? causeAt(filter.fingerprint) : filter?.partition_id ? `#/letters?partition_id=${encodeURIComponent(filter.partition_id)}` : "#/letters";
  return [outcome?.failed_again ? el("p", { id: "outcome" }, el("a", { href }, "See why they fail"), ". Mend that, such as by a new deployment, before the next retry.") : null,
    move === "discard" && status === "done" ? quiet("Their events get no rows. Nothing is left to do for them. ", el("a", { href }, "See these letters, and what is still open")) : null,
    later ? el("p", {}, `${plural(later, "letter")} failed after the preview: this task left ${later === 1 ? "it" : "them"} alone. `, el("a", { href }, "See what is open")) : null];
};

const redrive = {
  unit: "letter", more: () => [],
  status: (found) => (found.status === "done" ? found.outcome?.result : null) ?? found.status,
  result: (found) => found.outcome?.words ?? (found.move === "discard" ? `${plural(found.moved, "letter")} discarded` : null),
  goesOn: isTrying, notes: adviceOf, stays: "the letters that it moved stay moved",
  title: (found) => capital(found.move), name: (found) => `${capital(found.move)} of letters`, which: whichOf,
  done: (found) => `${count(found.done)} of ${plural(found.total, "letter")}`, says: movedWords,
  facts: (found) => [[[found.move === "discard" ? "Discarded" : "Tried again", plural(found.moved, "letter")], found.unmoved ? ["Changed meanwhile, left alone", plural(found.unmoved, "letter")] : null, ["Which letters", chosenOf(found)],
    found.per_second === null ? null : ["Letters per second, at most", count(found.per_second)]]],
  follow: async (place, found, shown) => {
    if (!found.outcome?.failed_again || shown.causes) return;
    shown.causes = (await get("dead-letters/groups", { ...(found.filter ?? { partition_id: found.letters[0].partition_id }), status: "exhausted", limit: 3 })).groups;
    renew(place, shown.causes.length ? card("Why they fail", shown.causes.map((one) => el("p", {}, el("a", { class: "error", href: causeAt(one.fingerprint) }, messageOf(one.sample, one.template ?? undefined))))) : null);
  },
};

/** Offer a dry run. */
function purgesCard(isAsked) {
  const trouble = el("div", {});
  const start = button("Count old rows", async () => {
    start.disabled = true;
    const counts = async () => { location.hash = taskAt(await open("purge", { reason: "a dry run from the operator's page" })); };
    start.disabled = await tried(trouble, counts);
  }, { id: "purge-count" });
  return formCard("Old rows", "Count what is old enough to be deleted", isAsked,
    quiet("This only counts, and deletes nothing. The result also says how long each kind of row is kept (setting ", mono("PURGE_DAYS"), ")."),
    el("div", { class: "row actions" }, start), trouble,
    quiet("To delete them for good, run ", mono("bin/hubledger purge start --for-real"), " in a checkout of the app's code. With the setting ", mono("PURGE_DAILY=true"), " the app does so every day."));
}

// What a table of the app stores, and the table whose days hold for it.
const STORED = { batch_ledger: ["Ledger: one row a batch"], retracted_row: ["Earlier rows that a replay replaced", "batch_ledger"],
  event_hub_dead_letter: ["Settled letters"], staged_event: ["Events staged for a replay"], replay_diff: ["Changes that dry runs found"], task_part: ["Progress of tasks", "task"],
  task: ["Tasks"], aggregation_failure: ["Failures of the aggregation"] };

/** Show what of each table is old enough, how long it is kept, and what keeps older rows. */
const oldRows = (found) => [card(found.dry_run ? "What is old enough" : "What was deleted", el("details", { open: found.rows > 0 }, el("summary", {}, "How long each kind of row is kept"), table("Tables", [
  ["What", (one) => STORED[one.table]?.[0] ?? one.table, "wide bare"],
  ["Kept for", (one) => plural(found.older_than_days[STORED[one.table]?.[1] ?? one.table] ?? null, "day")],
  [found.dry_run ? "Old enough" : "Deleted", (one) => `${plural(one.rows, "row")}${one.bytes ? `, about ${plural(Math.ceil(one.bytes / 1000), "kB")}`.replace("kBs", "kB") : ""}`],
  ["Oldest", (one) => (one.oldest ? dated(one.oldest) : "–")],
  ["Kept at any age", (one) => (one.notes.length ? cell("reasons", one.notes) : "–"), "wide"]], found.tables.filter((one) => one.table in STORED || one.rows || one.notes.length))))];

const purge = {
  stays: "the rows that it deleted stay deleted", name: () => "Purge of old rows", more: oldRows, facts: () => [],
  title: (found) => (found.dry_run ? "Dry run: nothing is deleted" : "Purge"), status: counting,
  notes: (found) => (found.dry_run && found.status === "done" ? quiet(found.rows ? ["To delete them for good, run ", mono("bin/hubledger purge start --for-real"), " in a checkout of the app's code."]
    : "Nothing is left to do: a purge now would delete nothing. Below stands after how many days a row is old enough.") : null),
  done: (found) => (ENDED.includes(found.status) ? !found.rows ? `No row ${found.dry_run ? "is old enough to be deleted" : "was old enough"}` : `${plural(found.rows, "row")} ${found.dry_run ? "old enough to be deleted" : "deleted"}`
    : `${counted(found)} steps, ${plural(found.rows, "row")} ${found.dry_run ? "counted" : "deleted"} so far`),
};

// The last dry run of this tab: the form is filled with it when the operator comes back. The erasure forgets it.
const COUNTED = "hubledger.counted";
const lastCount = () => JSON.parse(sessionStorage.getItem(COUNTED)) ?? { task: null, names: "", reason: "" };

/** The form of an erasure. A dry run comes first; then the same subjects can be erased, after one more question. */
function erasuresCard(isAsked) {
  const names = el("textarea", { name: "subjects", rows: 3, cols: 40, required: true, autocomplete: "off", spellcheck: "false" });
  const reason = el("input", { name: "reason", size: 40, required: true, minlength: 3, maxlength: 400, autocomplete: "off" });
  const trouble = el("div", {});
  const subjects = () => [...new Set(names.value.split("\n").map((one) => one.trim()).filter(Boolean))];
  const begin = async (dryRun, why) => {
    const task = await open("erasure", { subjects: subjects(), reason: why, dry_run: dryRun });
    if (dryRun) sessionStorage.setItem(COUNTED, JSON.stringify({ task: task.task_id, names: names.value, reason: reason.value }));
    else sessionStorage.removeItem(COUNTED);
    location.hash = taskAt(task);
  };
  const forGood = () => confirm({ title: "Forget them for good", word: "Erase", number: subjects().length, grave: true,
    text: (number) => `Rows, letters and windows of ${plural(number, "subject")} are erased for good. This cannot be undone, and no replay brings them back.`,
    act: async (_, why) => { await begin(false, why); return "The erasure has begun."; } });
  const erase = button("Erase for good …", forGood, { id: "erasure-erase", class: "grave" });
  const [first, said] = [el("button", { id: "erasure-count" }, "Count"), el("div", { id: "counted" })];
  const check = () => {
    erase.disabled = erase.hidden = said.hidden = !names.value || names.value !== lastCount().names;
    [first.className, first.textContent] = erase.hidden ? ["main", "Count"] : ["", "Count again"];
  };
  [names.value, reason.value] = [lastCount().names, lastCount().reason];
  names.addEventListener("input", check);
  check();
  if (lastCount().task) get(`tasks/${lastCount().task}`).then((found) => { if (found.status === "done") erase.textContent = eraseWords(found); said.append(el("p", {}, found.status === "done" ? el("b", {}, `${erasure.done(found)} of ${whose()}${found.rows ? ` (${plain(found.tables)})` : ""}`) : `The count is ${found.status}`, ", counted ",
    ago(found.ended_at ?? found.requested_at), ". ", el("a", { href: taskAt(found) }, "See the count"), ". If you change the subjects, count again."), unreached()); }, () => {});
  return card("Forget a person", el("details", { open: isAsked }, el("summary", {}, "Erase all that the app stores about someone"), quiet("Count first, which changes nothing; then what was counted can be erased, which cannot be undone. A subject is a partition key, or a value of the column that your app names as its subject, such as the id of a customer."),
  form({ class: "stacked" }, () => tried(trouble, () => begin(true, reason.value.trim())), field("Subjects, one a line", names), field("Why? It is stored, so name nobody.", reason), first), said, el("div", { class: "row" }, erase), trouble));
}

const eraseWords = (found) => `Erase ${erasure.done(found).replace(" found", "")} for good\u00a0…`;
/** Name the subjects of the last count of this tab. The app itself tells nobody whom an erasure is about. */
const whose = () => lastCount().names.split("\n").map((one) => one.trim()).filter(Boolean).join(", ");

/** Show the partitions of each stream, and the letters found in it. Only letters of the app's own stream have a page. */
function byStream(found) {
  const [parts, letters] = [found.partitions, found.letters_found].map((all) => Map.groupBy(all, (one) => one.stream ?? ""));
  const more = found.letters > found.letters_found.length ? `the first ${count(found.letters_found.length)} of ` : "";
  const positions = (all) => all.flatMap((one, at) => [at ? ", " : "", one.stream ? positionOf(one) : el("a", { href: letterAt(one), class: "whole" }, positionOf(one))]);
  const isThrough = (one) => BigInt(one.next) > BigInt(one.last);
  const columns = [["Partition", (one) => one.partition_id],
    ["Searched", (one) => (isThrough(one) ? `all, up to ${grouped(one.last)}` : `up to ${grouped(BigInt(one.next) - 1n)} of ${grouped(one.last)}`)]];
  const streams = [...parts.keys()].sort();
  const isGone = !found.dry_run && found.status === "done";
  return [found.letters_found.length ? card(isGone ? "Letters that were erased" : "Letters that mention them", quiet(capital(`${more}${plural(found.letters, "letter")}`),
    isGone ? ": the body, key and texts are gone. The position stays, because the ledger counts it." : ""),
    streams.filter((name) => letters.has(name)).map((name) => el("p", { class: "found" }, name ? `${name}: ` : "", positions(letters.get(name))))) : null,
  card("Where the app looked", el("details", {}, el("summary", {}, `${count(found.partitions.filter(isThrough).length)} of ${plural(found.partitions.length, "partition")} searched`),
    streams.map((name) => [name ? el("h3", {}, name) : null, table(name || "Partitions", columns, inOrder(parts.get(name)))])))];
}

const unreached = () => el("p", {}, el("b", {}, "Erasing cannot be undone."), " It does not reach backups, the hub itself, files of Event Hubs Capture, a lake that the setting LAKE does not name, other apps and logs (", el("a", { href: guideAt("erasure", "What is not reached"), target: "_blank", rel: "noopener" }, "what is not reached"), ").");
/** The notes of an erasure that is done which are left to the operator. */
const tasksOf = (found) => (found.status === "done" && !found.dry_run ? found.notes.filter((note) => note.startsWith("to do: ")) : []);
const noted = (words, notes) => (notes.length ? [el("p", {}, el("b", {}, words)), el("ul", {}, notes.map((one) => el("li", {}, capital(one.replace(/^to do: /, "")))))] : null);
// Where else an erasure looks, in words.
const ELSEWHERE = { reasons: "Reasons and error texts of other letters that name them", staged: "Events staged for a replay", retracted: "Earlier rows that a replay replaced", diffs: "Changes that dry runs found" };

const erasure = {
  more: byStream, stays: "what it has erased stays erased", name: () => "Erasure",
  status: (found) => (tasksOf(found).length ? `done in this app; ${plural(tasksOf(found).length, "place")} outside it` : counting(found)),
  title: (found) => (found.dry_run ? "Dry run: nothing is erased" : found.status === "done" ? "Erased for good" : "Erasure"),
  done: (found) => `${plural(found.rows, "row")} and ${plural(found.letters, "letter")} ${found.dry_run ? "found" : "erased"}`, says: (found) => `${erasure.done(found)}.`,
  notes: (found) => (found.dry_run ? [el("p", {}, `Counted for ${found.task_id === lastCount().task ? whose() : plural(found.subjects, "subject")}.`), unreached()]
    : [noted("Outside this app, where only you can look:", tasksOf(found)), tasksOf(found).some((one) => one.includes("again")) ? el("p", {}, el("a", { href: "#/tasks?erase" }, "Erase again (you give the subject again)")) : null,
      noted("Copies that end by themselves:", found.notes.filter((one) => !one.startsWith("to do: "))),
      found.status === "done" ? quiet(`No event of ${found.subjects === 1 ? "this subject" : `these ${count(found.subjects)} subjects`} from before the request is written again. To know such events, the app keeps only a keyed hash, from which nobody can read a subject: so this page cannot show whom it was about. An event that reaches the hub after the request counts as new.`) : null]),
  facts: (found) => [Object.entries(found.tables).map(([name, rows]) => [`Table ${name}`, plural(rows, "row")]), [found.most_rows === null ? null : ["Rows, at most", count(found.most_rows)],
    ...Object.entries(ELSEWHERE).map(([name, words]) => (found[name] ? [words, count(found[name])] : null)),
    Object.keys(ELSEWHERE).some((name) => found[name]) ? null : ["Elsewhere in the app", "no other copy"]]],
  actions: (found) => (found.status === "done" && found.dry_run ? el("a", { class: found.task_id === lastCount().task ? "go grave" : "go", href: "#/tasks?erase" },
    found.task_id === lastCount().task ? eraseWords(found) : "To erase, enter the subjects and count again") : null),
};

const verdict = (found) => (found.faults.length ? plural(found.faults.length, "fault") : found.ended_at ? "no fault" : "no fault so far");

const audit = {
  stays: "it has changed nothing", name: () => "Audit of the ledger", title: () => "Audit of the ledger",
  status: (found) => (found.status === "done" && found.faults.length ? "not balanced" : found.status),
  result: (found) => (found.ended_at ? verdict(found) : null),
  done: (found) => `${count(found.done)} of ${plural(found.total, "partition")}, ${verdict(found)}`,
  notes: (found) => (found.partitions.some((one) => one.rows?.complete === false) ? el("p", {}, "In some partitions only the newest rows were recounted: an audit has a limit.") : null),
};

const [EVERY_MS, LIST_EVERY_MS] = [1000, 5000];
const [PAGE, SHORT_PAGE, UNKNOWN] = [20, 5, "a key holder"]; // tasks of a page, and those unfolded on a narrow one
/** Mark a problem that does not pass by itself: there is no such task. */
const final = (problem) => { throw Object.assign(problem, { isFinal: [400, 404].includes(problem.status) }); };
const ENDED = ["done", "cancelled", "failed"];
const STATUSES = ["planned", "running", "paused", ...ENDED];
// A kind: its title, what of it is done, a sentence that sums it up, its own facts (lists of pairs), what stays when it is
// cancelled, more panels, what follows it beside them; in a list, a word for its status and its result; the unit that it
// counts in; and whether something goes on after its end. What a kind does not say is shown as it is: plain fields as facts,
// and lists as tables.
const OTHER = { title: (task) => capital(task.kind), name: (task) => capital(task.kind), done: (task) => counted(task), facts: (task) => [plainFacts(task)],
  more: (task) => lists(task), stays: "what it has done stays done" };
const KINDS = { replay, redrive, purge, audit, erasure };
const MOVES = { pause: () => "The task stops between two pieces, and can be resumed there.", resume: () => "The task continues where it was paused.",
  cancel: (kind) => `The task ends for good; ${kindOf(kind).stays}.` };

const kindOf = (name) => ({ ...OTHER, ...KINDS[name] });
const nameOf = (one) => `${kindOf(one.kind).name(one)}${one.dry_run ? ", dry run" : ""}`;
/** Name who did something: without sign-in the app knows only that the caller had the key. */
export const who = (by, unknown = UNKNOWN) => (by in KINDS ? "the app" : by.startsWith("unverified") ? unknown : by);
const counted = (task) => `${count(task.done)} of ${count(task.total)}`;

/** The fields that only this kind has: they follow `history`, the last one of every kind. */
const ownFields = (task) => Object.entries(task).slice(Object.keys(task).indexOf("history") + 1);
const labelOf = (name) => capital(name.replaceAll("_", " "));

const plainFacts = (task) => ownFields(task).filter(([, value]) => !Array.isArray(value)).map(([name, value]) => [labelOf(name), plain(value)]);

const lists = (task) => ownFields(task).filter(([, value]) => Array.isArray(value) && typeof value[0] === "object")
  .map(([name, entries]) => card(labelOf(name), table(labelOf(name), Object.entries(entries[0]).map(([key, value]) =>
    [labelOf(key), (one) => cell(key, one[key]), typeof value === "number" ? "amount" : null]), "partition_id" in entries[0] ? inOrder(entries) : entries)));

function cell(name, value) {
  if (typeof value === "boolean") return badge(value ? name : `not ${name}`);
  if (Array.isArray(value)) return value.length > 2 ? el("details", {}, el("summary", {}, plural(value.length, name.replace(/s$/, ""))), value.join("; ")) : value.join("; ");
  if (/^\d{4}-\d\d-\d\dT/.test(value)) return dated(value);
  return /^\d+$/.test(value) && name !== "partition_id" ? grouped(value) : plain(value);
}

function plain(value) {
  if (typeof value === "number") return count(value);
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([name, one]) => `${name} ${plain(one)}`).join(", ");
}

/** Say how fast a running task has been since it began, and how long the rest takes at this rate. */
function paceOf(task, unit) {
  const rate = task.done / ((Date.parse(task.updated_at) - Date.parse(task.started_at)) / 1000);
  if (task.status !== "running" || !(rate > 0 && rate < Infinity)) return "";
  const left = task.total > task.done ? `, about ${duration((task.total - task.done) / rate)} left` : "";
  return `${unit ? `, ${plural(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate), unit)} a second` : ""}${left}`;
}

const bar = (task, name) => el("progress", { max: Math.max(1, task.total), value: task.total ? Math.min(task.done, task.total) : 1, "aria-label": name });

/** The result of a task in a list; without one, how far it is. */
function standing(one) {
  const kind = kindOf(one.kind);
  if (!ENDED.includes(one.status)) return [bar(one, `progress of the ${one.kind}`), kind.done(one), paceOf(one, kind.unit)];
  return kind.result?.(one) ?? kind.done(one);
}

/** A table of tasks. Who requested them has a column, unless the app knows that of none. */
export const tasksTable = (label, tasks, groups = []) => table(label, [
  ["Task", (one) => [el("a", { class: "whole", href: taskAt(one) }, nameOf(one)), el("span", { class: "quiet which" }, kindOf(one.kind).which?.(one, groups) ?? "")], "wide bare"],
  ["When", (one) => ago(one.requested_at)],
  ["Status", (one) => [badge(kindOf(one.kind).status?.(one) ?? one.status), one.fault ? el("p", { class: "quiet" }, one.fault) : null]], [tasks.every((one) => ENDED.includes(one.status)) ? "Result" : "Progress", standing, "wide result"],
  ["Why", (one) => one.reason, "wide"], tasks.every((one) => who(one.requested_by) === UNKNOWN) ? null : ["By", (one) => el("span", { class: "whole" }, who(one.requested_by))]].filter(Boolean), tasks);

export async function tasks(place, left, asked = "") {
  const given = new URLSearchParams(asked);
  const chosen = Object.fromEntries([...given].filter(([name]) => ["kind", "status"].includes(name)));
  const [filter, lead, found] = [el("div", {}), el("div", {}), el("div", { class: "place" })];
  const asks = ["first", "purge", "erase"].find((name) => given.has(name)) ?? "list"; // a link leads to its form
  const parts = { list: el("div", { class: "place" }, lead, card("Newest tasks", filter, found)), first: newReplay(given, asks === "first"), purge: purgesCard(asks === "purge"), erase: erasuresCard(asks === "erase") };
  place.append(el("h1", {}, "Tasks"), parts[asks], ...Object.values(parts).filter((one) => one !== parts[asks]));
  let [at, groups] = [["", []], null];
  const failing = seldom(async () => (await get("dead-letters/groups", { status: "exhausted", limit: 100 })).groups, []);
  const show = async (...to) => {
    if (to.length) at = to;
    const page = await get("tasks", { ...chosen, limit: PAGE, cursor: at[0] });
    if (page.tasks.some((one) => one.filter?.fingerprint)) groups ??= (await get("dead-letters/groups", { limit: 100 }).catch(() => ({ groups: [] }))).groups; // they name causes
    const vain = at[0] ? 0 : vainOf(page.tasks), open = vain > 0 ? await failing() : [];
    if (left.aborted) return;
    const isFiltered = Object.keys(chosen).length > 0;
    if (!filter.hasChildNodes() && (page.tasks.length || isFiltered)) filter.append(filterOf(chosen, page.kinds));
    if (asks === "list") renew(lead, ...leadOf(page.tasks, open.length ? vain : 0, open, () => show()));
    renew(found, ...listed(page.tasks, isFiltered, groups ?? [], isNarrow() || asks !== "list", pager(["Newer", "Older"], { cursor: at[0], before: at[1] }, page.next, (...next) => tried(found, () => show(...next)))));
  };
  await repeat(left, LIST_EVERY_MS, () => show());
}

function filterOf(chosen, kinds) {
  const named = (words) => [["", "all"], ...words.map((word) => [word, word === "redrive" ? "retry or discard" : word])];
  const fields = form({ class: "row" }, (given) => {
    const asked = new URLSearchParams([...new FormData(given)].filter(([, value]) => value));
    location.hash = `#/tasks${asked.size ? `?${asked}` : ""}`;
  }, field("Kind", choice("kind", named(kinds), chosen.kind)), field("Status", choice("status", named(STATUSES), chosen.status)), el("button", {}, "Filter"));
  return el("details", { class: "filter", open: Object.keys(chosen).length > 0 }, el("summary", {}, "Filter"), fields);
}

/** Say what the tasks of a page need: those that are paused, and on the first page the retries that did not help. */
function leadOf(tasks, vain, groups, again) {
  if (!tasks.length) return [];
  const are = ({ length }) => `${count(length)} ${length === 1 ? "task is" : "tasks are"}`;
  const [paused, running, failed] = [["paused"], ["planned", "running"], ["failed"]].map((these) => tasks.filter((one) => these.includes(one.status)));
  const line = (one, stop = one.history.findLast((each) => each.move === "pause")) => el("span", { class: "which" }, el("a", { href: taskAt(one) }, nameOf(one)), ", ", kindOf(one.kind).which?.(one) ?? "",
    `: ${count(one.done)} of ${plural(one.total, kindOf(one.kind).unit ?? "part")} done. Paused `, ago(stop.at), ` by ${who(stop.by)}, reason: “${stop.why}”. The rest stays as it is meanwhile. `, button("Resume …", () => ask(one, "resume", again)));
  const [number, newest] = [groups.reduce((sum, one) => sum + one.open, 0), groups.toSorted((one, other) => other.last_failed_at.localeCompare(one.last_failed_at))[0]];
  return [paused.length ? matter("warn", `${are(paused)} paused until somebody resumes ${paused.length === 1 ? "it" : "them"}`, paused.map((one) => line(one))) : null,
    vain ? matter("warn", `The last ${vain === 1 ? "retry" : `${count(vain)} retries`} of letters did not help`, [`None of their letters was written: mend the cause before the next retry. ${needing(number)}; the newest failed with: `,
      el("span", { class: "error" }, messageOf(newest.sample)), el("a", { href: "#/letters" }, "See the letters"), " · ", el("a", { href: "#/tasks?kind=redrive" }, "See these retries")], "Can wait until morning") : null,
    el("p", { id: "standing" }, `${running.length ? `${are(running)} running: the app goes on by itself` : "No task is running"}${failed.length ? `; ${count(failed.length)} failed: open it to see why` : ""}.`)];
}

/** List the tasks that are open, paused ones first, then those that have ended; a short list unfolds its older ones. */
function listed(tasks, isFiltered, groups, isShort, pages) {
  const [ended, open] = [true, false].map((isOver) => tasks.filter((one) => ENDED.includes(one.status) === isOver));
  open.sort((one, other) => (other.status === "paused") - (one.status === "paused"));
  const [shown, older] = isShort ? [ended.slice(0, SHORT_PAGE), ended.slice(SHORT_PAGE)] : [ended, []];
  if (tasks.length) return [...(open.length ? [el("h3", {}, "Running and paused"), tasksTable("Running and paused", open, groups)] : []), open.length && ended.length ? el("h3", {}, "Ended") : null, shown.length ? tasksTable("Tasks", shown, groups) : null,
    older.length ? el("details", {}, el("summary", {}, pages.hasChildNodes() ? "Older ones" : `${count(older.length)} older ones`), tasksTable("Older tasks", older, groups), pages) : pages];
  return isFiltered ? [el("p", {}, "No task matches the filter.")] : [el("p", {}, "No task has been requested yet."),
    quiet("A task is work that you request. The app does it by itself, and shows its progress and result here. A replay, a count of old rows or an erasure begins below, a retry or discard under ", el("a", { href: "#/letters" }, "Letters"), ", and an audit in the ", el("a", { href: "#/" }, "overview"), ".")];
}

export async function task(place, left, id) {
  const title = el("h1", {}, "Task");
  const [head, follows, more] = [1, 2, 3].map(() => el("div", {}));
  place.append(title, head, follows, more);
  const shown = {};
  await repeat(left, EVERY_MS, async () => {
    const found = await get(`tasks/${encodeURIComponent(id)}`).catch(final);
    if (left.aborted) return false;
    const [kind, isOver] = [kindOf(found.kind), ENDED.includes(found.status)];
    title.textContent = [nameOf(found), kind.which?.(found)].filter(Boolean).join(": ");
    renew(head, progress(found, kind, isOver));
    renew(more, ...kind.more(found), history(found));
    await kind.follow?.(follows, found, shown, isOver);
    return isOver && !kind.goesOn?.(found);
  });
}

function progress(found, kind, isOver) {
  const allowed = isOver ? [] : [found.status === "paused" ? "resume" : "pause", "cancel"];
  const figures = el("div", { class: "columns" }, ...kind.facts(found).map((pairs) => facts(pairs)));
  const named = found.dry_run ? "the dry run" : `the ${found.move ?? found.kind}`;
  const look = { cancel: { class: found.dry_run ? "apart" : "grave apart" }, resume: { class: "main" } };
  return card(kind.title(found),
    el("p", { class: "verdict", id: "task-status" }, badge(kind.status?.(found) ?? found.status), el("span", {}, kind.says && isOver ? kind.says(found)
      : `${kind.done(found)}${paceOf(found, kind.unit)}`)), isOver ? null : bar(found, "progress"), isOver ? null : standsNow(found),
    found.fault ? fault({ detail: found.fault }) : null, kind.notes?.(found) ?? null,
    el("div", { class: "row" }, allowed.map((move) => button(`${capital(move)} ${named}\u00a0…`, () => ask(found, move), look[move])), kind.actions?.(found) ?? null),
    kind.follow ? el("details", {}, el("summary", {}, "All figures"), figures) : figures);
}

/** Say since when a task that is open runs or is paused, by whom and why, and what that means. */
function standsNow(found) {
  const paused = found.status === "paused" ? found.history.findLast((one) => one.move === "pause") : null;
  const harmless = found.dry_run ? " A dry run changes nothing, also when it is cancelled." : "";
  if (paused) return el("p", { id: "stands" }, `Paused by ${who(paused.by)} `, ago(paused.at), paused.why ? `: “${paused.why}”` : "", `. It goes on only when somebody resumes it.${harmless}`);
  return el("p", { id: "stands" }, found.started_at ? ["Begun ", ago(found.started_at), found.done ? [", last progress ", ago(found.updated_at)] : ", nothing done yet"] : "Not begun yet",
    `. The app goes on by itself: you need not wait here. If nothing moves for minutes, look at the `, el("a", { href: "#/" }, "overview"), ` for what is stopped.${harmless}`);
}

function ask(found, move, again = () => {}) {
  const version = found.app_transform_version;
  const isNew = move === "resume" && version && version !== found.transform_version;
  const named = isNew ? { transform_version: version } : {};
  const more = isNew ? ` What is left of it is done with the transform ${version}, not with ${found.transform_version}.` : "";
  confirm({ title: `${capital(move)}: ${nameOf(found)}`, word: `${capital(move)} the task`, number: null,
    text: () => MOVES[move](found.kind) + more, grave: move === "cancel" && !found.dry_run,
    act: async (_, reason) => { await post(`tasks/${found.task_id}/${move}`, { reason, ...named }); return `${move}: done`; } }).then((done) => (done ? again() : null));
}

const DONE = { begin: "begun", pause: "paused", resume: "resumed", cancel: "cancelled", fail: "failed" };

const history = (found) => card("What happened", el("ol", { class: "attempts" }, moved({ move: "requested", by: found.requested_by, at: found.requested_at, why: found.reason }),
  found.history.map(moved), found.status === "done" ? el("li", {}, badge(kindOf(found.kind).status?.(found) ?? "done"), " ", dated(found.ended_at)) : null));

const moved = (one) => el("li", {}, badge(DONE[one.move] ?? one.move), ` by ${who(one.by)}, `, dated(one.at), one.why ? el("p", { class: "quiet" }, `Why: ${one.why}`) : null);
