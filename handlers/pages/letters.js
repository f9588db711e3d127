// The letters: lists, causes, one letter, and the redrives that try them again.

import { confirm, get, open, tried } from "./api.js";
import { ago, badge, button, capital, card, causeAt, choice, CLASSES, classOf, count, dated, duration, el, facts, fault, field, form, grouped, isNarrow, ledgerAt,
  letterAt, matter, messageOf, mono, needing, pager, plural, positionOf, quiet, renew, runbook, table, taskAt, typeOf, wordOf } from "./dom.js";
import { isExpiring } from "./overview.js";
import { tasksTable, vainOf } from "./tasks.js";

const STATUSES = ["", "waiting", "retrying", "held", "exhausted", "resolved", "discarded"];
const NAMES = ["fingerprint", "status", "error_class", "partition_id", "partition_key", "failed_from", "failed_before"];
const TRIES = ["retry", "replay"];
export const KINDS = { retry: "tried", replay: "replayed", requeue: "made due", discard: "discarded", exhaust: "given up", free: "freed" };
const [PAGE, SHORT_PAGE, MOST_GROUPS] = [50, 10, 100]; // the short one on a narrow screen

export async function letters(place, left, asked = "") {
  const read = asked ? null : await statusOrNull();
  const given = read?.letters.exhausted ? "status=exhausted" : asked; // without a filter, those that need an operator
  if (left.aborted) return;
  const chosen = Object.fromEntries([...new URLSearchParams(given)].filter(([name, value]) => NAMES.includes(name) && value));
  const [totals, lead, body] = [el("nav", { class: "totals", "aria-label": "Letters by status" }), el("div", { "aria-live": "polite", class: "place" }), el("div", { class: "place" })];
  place.append(el("h1", {}, "Letters"), lead, totals, filterCard(chosen), body);
  const again = () => show([lead, totals], body, left, chosen, again);
  await show([lead, totals], body, left, chosen, again, read);
}

const ALL = "#/letters?status=";
const statusOrNull = () => get("status").catch(() => null); // without it, the causes still show

async function show([lead, totals], body, left, chosen, again, read = null) {
  const [by, list] = [chosen.fingerprint ? "value" : "cause", el("div", {})];
  const [status, { groups }, { tasks }] = await Promise.all([read ?? statusOrNull(), get("dead-letters/groups", { ...chosen, limit: MOST_GROUPS }), get("tasks", { kind: "redrive", limit: COUNTED })]);
  if (left.aborted) return;
  if (status) totals.replaceChildren(...totalsOf(status.letters, chosen));
  if (status) lead.replaceChildren(leadOf(status.letters, groups, chosen, hopeOf(status.transform_version, groups.filter((one) => one.open)), vainOf(tasks.filter((one) => isLike(one, chosen))), status.hub_forgets));
  body.replaceChildren(groupsCard(groups, chosen, by, again, { tasks, runs: status?.transform_version }), list, redrivesCard(tasks.slice(0, LISTED), groups));
  if (groups.length) await pageOf(list, chosen, again, status?.hub_forgets.lost);
}

/** Say whether a retry can help letters that failed like the newest of these groups: the app may run another version since. */
function hopeOf(runs, groups, isOne = groups.length === 1 && groups[0].open === 1) {
  const [failed, they] = [new Set(groups.map((one) => one.sample.transform_version)), isOne ? "it" : "they"];
  const [isPoison, others] = [groups.every((one) => one.sample.error_class === "poison"), [...failed].filter((one) => one !== runs)];
  if (!runs || !failed.size) return { words: "" };
  if (others.length) return { words: `The app now runs version ${runs}; ${failed.has(runs) ? "some of them" : they} failed with ${others.join(" and ")}: a retry may help.`, isNewer: true };
  return { words: `The app still runs version ${runs}, with which ${they} failed: ${isPoison ? `${they} fail${isOne ? "s" : ""} again.` : `${they} will fail again unless what ${isOne ? "it needs" : "they need"} was repaired.`}`, isVain: isPoison };
}

/** Say in a sentence what the open letters need. */
function leadOf({ open, exhausted }, groups, { status, partition_id: id, ...others }, hope, vain, hub) {
  const ofOpen = groups.filter((one) => one.open);
  const need = exhausted ? needing(exhausted) : "No letter needs you";
  const where = Object.keys(others).length ? " of the filter below" : id ? ` in partition ${id}` : "";
  const here = where && exhausted ? `${plural(ofOpen.reduce((sum, one) => sum + one.open, 0), "open letter")}${where}` : "";
  const [first, last] = [ofOpen.map((one) => one.first_failed_at).sort()[0], ofOpen.map((one) => one.last_failed_at).sort().at(-1)];
  const within = first < last && ofOpen.every((one) => one.open === one.letters) ? ` They failed within ${duration((Date.parse(last) - Date.parse(first)) / 1000)}, the newest ` : " The newest one here failed ";
  const gone = hub.lost.filter((one) => one.kind === "unkept" && (!id || one.partition_id === id)).reduce((sum, one) => sum + one.events, 0);
  const tonight = gone ? `${plural(gone, "letter")} ${gone === 1 ? "has" : "have"} lost the event: look for “lost” below. ` : isExpiring(hub) ? `The hub drops the next event in about ${duration(3600 * hub.loss_hours)}. ` : "";
  const isPoison = ofOpen.length > 0 && ofOpen.every((one) => one.sample.error_class === "poison");
  return matter(exhausted ? "warn" : "good", here || need, [exhausted ? tonight : "", here ? `In all, ${need}. ` : "", "A letter is an event that could not be written; events after it go on.", last ? [within, ago(last), ". "] : " ", exhausted
    ? [isPoison ? el("span", { id: "all-poison" }, "Your transform (the code that turns events into rows) rejects them as poison (faulty events). ", hope.words, hope.isNewer ? "" : " A retry helps only after a developer has deployed a corrected one.", " Discard only what you can do without. ")
      : `The app does not try them again by itself: mend the cause, then retry. ${hope.words} `, vain ? `The newest ${vain === 1 ? "retry" : `${count(vain)} retries`} did not help. ` : "", runbook("letters-open")]
    : open ? `The app tries the ${count(open)} open ones again by itself.` : "No letter is open."], exhausted ? tonight ? "Act tonight" : "Can wait until morning" : null);
}

/** Return the number of letters of each status, which filter by it, and the words that explain them. */
function totalsOf(found, { status = "", ...others }) {
  const link = ([name, word, number]) => el("a", { href: `${ALL}${name}`, class: name === "exhausted" && number ? "total warn" : "total",
    "aria-current": name === status && !Object.keys(others).length ? "true" : null }, el("b", {}, count(number)), ` ${word}`);
  const states = Object.keys(STATES).filter((name) => found[name] || name === status);
  const explained = Object.entries(STATES).filter(([name]) => found[name]).map(([name, words]) => `${capital(name)}: ${words}. `);
  return [...[["", "letters", found.open + found.settled], ["exhausted", "need you", found.exhausted], ...states.map((name) => [name, name, found[name]])].map(link),
    found.settled ? el("span", {}, el("b", {}, count(found.settled)), " settled:", ["resolved", "discarded"].map((name, at) => [at ? " · " : " ", el("a", { href: `${ALL}${name}`, "aria-current": name === status ? "true" : null }, `see the ${name}`)])) : "",
    found.settled && !isNarrow() ? quiet(explained, "Resolved: written since. Discarded: given up by an operator.") : explained.length ? quiet(explained) : ""];
}

const STATES = { waiting: "tried again by itself at its time", retrying: "tried now", held: "waits for an earlier letter of its partition key" };

function filterCard(chosen) {
  const text = (name, size) => el("input", { name, size, value: chosen[name] ?? "", autocomplete: "off" });
  const moment = (name) => el("input", { name, type: "datetime-local", step: 1, value: (chosen[name] ?? "").replace(/Z$/, "") });
  const fields = form({ class: "fields" }, follow, field("Status", choice("status", STATUSES.map((value) => [value, value ? wordOf(value) : "any"]), chosen.status)),
    field("Class", choice("error_class", [["", "any"], ...Object.entries(CLASSES)], chosen.error_class)),
    field("Partition", text("partition_id", 6)), field("Partition key", text("partition_key", 14)), field("Cause", text("fingerprint", 14)),
    field("Failed from (UTC)", moment("failed_from")), field("before (UTC)", moment("failed_before")),
    el("div", { class: "row" }, el("button", { class: "main" }, "Filter"), button("All letters", () => { location.hash = ALL; })));
  const set = Object.entries(chosen).map(([name, value]) => `${name.replace("partition_id", "partition").replaceAll("_", " ")} ${CLASSES[value] ?? wordOf(value)}`);
  return el("section", { class: "card", "aria-label": "Filter" },
    el("details", { class: "filter" }, el("summary", {}, set.length ? `Filter: ${set.join(", ")}` : "Filter"), fields));
}

function follow(fields) {
  const given = [...new FormData(fields)].filter(([, value]) => value);
  const asked = new URLSearchParams(given.map(([name, value]) => [name, name.startsWith("failed") ? `${value}Z` : value]));
  location.hash = asked.size ? `#/letters?${asked}` : ALL;
}

/** A fingerprint is a cause, and after a dot the values of its message. */
const causeOf = (fingerprint) => fingerprint.split(".")[0];

/** The message of a cause with a gap for each value, or one value of it. */
const saidBy = (one, by) => (by === "value" && one.examples?.length ? one.examples[0] : messageOf(one.sample, one.variants > 1 ? one.template ?? one.sample.error : one.sample.error));

/** Name the values that the gap of a message stands for: all, or their number and some of them. */
const valuesOf = (one) => (one.variants > 1 ? el("span", { class: "quiet values" }, !one.examples?.length ? `${count(one.variants)} different values`
  : one.examples.length === one.variants ? `… stands for ${one.examples.join(" or ")}`
    : `… stands for one of ${count(one.variants)} values, such as ${one.examples.join(", ")}`) : null);

/** Show the causes with open letters first; those whose letters are all settled are one line, which unfolds. */
function groupsCard(groups, chosen, by, again, known) {
  const within = (group) => ({ ...chosen, fingerprint: group.fingerprint });
  const cause = (one) => [el("a", { class: "error", href: `#/letters?${new URLSearchParams(within(one))}` }, saidBy(one, by)), valuesOf(one), kindOf(one.sample)];
  const columns = [[by === "value" ? "Value" : "Cause", cause, "wide bare"], ["Open letters", (one) => count(one.open), "amount"],
    groups.some((one) => one.open !== one.letters) ? ["With settled ones", (one) => count(one.letters), "amount"] : null,
    ["First failed", (one) => ago(one.first_failed_at), "minor"], ["Last failed", (one) => ago(one.last_failed_at)]].filter(Boolean);
  const trouble = el("div", { "aria-live": "polite" });
  const ask = (one) => (move) => tried(trouble, () => orderOf(move, within(one), again, aboutOf(chosen, saidBy(one, by))));
  const moves = ["", (one) => moveButtons(one.retryable ? ["retry", "discard"] : ["discard"], ask(one)), "wide"];
  const [open, settled] = [true, false].map((isOpen) => groups.filter((one) => (one.open > 0) === isOpen));
  const none = Object.values(chosen).join() === "exhausted" ? [el("p", {}, "No letter needs you.")] : Object.keys(chosen).length ? [el("p", {}, "No letter matches the filter.")]
    : [el("p", {}, "No event has failed: there is no letter."),
      quiet("An event becomes a letter when your transform raises an error, or when the database refuses its rows.")];
  const canRetry = open.some((one) => one.retryable) || groups.length === MOST_GROUPS; // others may not be shown
  return card(by === "value" ? "By value of the message" : "By cause", groups.length ? null : none,
    open.length && !canRetry ? el("p", { class: "quiet", id: "no-retry" }, "No letter here can be retried: each is being "
      + "retried now, or is held until the letter that it waits for is settled.") : null,
    open.length > 0 && chosen.status !== "held" ? moveAll(chosen, groups, again, canRetry, known) : null,
    open.length ? [trouble, table("Letters by cause", [...columns, moves], open)] : null, settled.length ? el("details", { id: "settled", open: open.length === 0 },
      el("summary", {}, plural(settled.length, "settled cause")), table("Settled causes", columns, settled)) : null);
}

/** Return the partition key of a letter, which is hidden with its message. */
const keyOf = (one) => (one.error !== null && one.partition_key === null ? "–" : mono(one.error === null ? "hidden" : one.partition_key));

/** Show the type of a failure, its class, and the line of the room that raised it. A KeyError is named by its message. */
const kindOf = (one) => el("span", { class: "kinds" }, [typeOf(one)].filter((name) => name && name !== "KeyError" && one.error_class !== "poison")
  .map((name) => el("span", { class: "badge type" }, name)), " ", badge(classOf(one)), one.error_at ? mono(one.error_at) : null);

const moveButtons = (moves, ask) => el("span", { class: "row moves" }, moves.map((move) => moveButton(move, ask)));
const moveButton = (move, ask, more = look(move)) => button(`${MOVES[move].word} …`, () => ask(move), more);

/** A grave move looks grave, and stands apart from the others. */
const look = (move, more = {}) => ({ class: MOVES[move].grave ? "grave apart" : null, ...more });

async function pageOf(list, chosen, again, lost, cursor = "", before = []) {
  const page = await get("dead-letters", { ...chosen, limit: isNarrow() ? SHORT_PAGE : PAGE, cursor });
  const boxes = new Map();
  const actions = el("div", { class: "row" }, quiet("Choose letters to retry or discard only those."));
  const box = (one) => {
    const input = el("input", { type: "checkbox", "aria-label": `choose ${one.partition_id} / ${one.sequence_number}`, onchange: () => tell(actions, boxes, again) });
    boxes.set(input, one);
    return input;
  };
  const columns = [["Partition / number", (one) => [Object.values(MOVES).some(({ from }) => from.includes(one.status)) ? [box(one), " "] : "",
    el("a", { class: "whole", href: letterAt(one) }, positionOf(one))], "bare"],
    ["Error", (one) => el("span", { class: "error" }, messageOf(one)), "wide"],
    ["Status", (one) => [badge(one.status), isLost(one, lost) ? [" ", el("span", { class: "badge bad", title: LOST }, "lost")] : null], chosen.status && !page.letters.some((one) => isLost(one, lost)) ? "minor" : undefined],
    page.letters.some((one) => keyOf(one) !== "–") ? ["Key", keyOf] : null,
    ["Failed", (one) => ago(one.failed_at)],
  ].filter(Boolean);
  const every = button("Choose all shown", () => {
    const all = [...boxes.keys()].every((input) => input.checked);
    for (const input of boxes.keys()) input.checked = !all;
    tell(actions, boxes, again);
  });
  const isShown = !isNarrow() || cursor || before.length || Object.keys(chosen).some((name) => name !== "status");
  list.replaceChildren(card("One by one", el("details", { open: isShown }, el("summary", {}, `${cursor ? "Older ones: " : page.next ? "The newest " : "All "}${plural(page.letters.length, "letter")}${aboutOf(chosen).where}`),
    el("div", { class: "row" }, every, actions), table("Letters", columns, page.letters),
    pager(["Newer", "Older"], { cursor, before }, page.next, (...to) => pageOf(list, chosen, again, lost, ...to)))));
}

const LOST = "The hub has dropped the event, and this app has no copy: no retry can help. Take the event from Event Hubs Capture (files in a storage account) or from its publisher, as long as they have it, and have it sent again. Then discard this letter, or at once if you can do without the event.";

/** Return true for an open letter whose event is lost: its number is before those that the hub still has. */
const isLost = (one, lost = []) => !one.body_kept && OPEN.includes(one.status) && lost.some(({ partition_id: id, kind, before }) =>
  id === one.partition_id && kind === "unkept" && BigInt(one.sequence_number) < BigInt(before));

/** Offer each move with the number of chosen letters that allow it. */
function tell(actions, boxes, again) {
  const chosen = [...boxes].filter(([input]) => input.checked).map(([, one]) => one);
  actions.replaceChildren(...Object.keys(MOVES).map((move) => {
    const own = chosen.filter((one) => MOVES[move].from.includes(one.status));
    const ask = () => order(move, { letters: named(own) }, own.length, again);
    return button(`${MOVES[move].word} ${count(own.length)} …`, ask, look(move, { disabled: own.length === 0 }));
  }));
}

const named = (chosen) => chosen.map(({ partition_id, sequence_number }) => ({ partition_id, sequence_number }));

export async function letter(place, left, partition, number) {
  const path = `dead-letters/${encodeURIComponent(partition)}/${encodeURIComponent(number)}`;
  const whole = await get(path);
  const draw = (gone) => { if (!left.aborted) place.replaceChildren(...parts(whole, gone, path, () => letter(place, left, partition, number))); };
  draw(false); // a status may take long
  const status = OPEN.includes(whole.letter.status) ? await statusOrNull() : null;
  if (!status || left.aborted) return;
  if (isLost(whole.letter, status.hub_forgets.lost)) return draw(true);
  if (whole.letter.status !== "exhausted") return;
  place.querySelector(".matter").prepend(el("p", { class: "when" }, !whole.letter.body_kept && isExpiring(status.hub_forgets) ? "Act tonight" : "Can wait until morning"));
  place.querySelector(".matter .detail").append(hopeOf(status.transform_version, [{ sample: whole.letter, open: 1 }]).words);
}

function parts(whole, gone, path, again) {
  const one = whole.letter;
  const alone = `first=${one.sequence_number}&last=${one.sequence_number}`;
  const ask = (move) => order(move, { letters: named([one]) }, 1, again);
  const allowed = Object.keys(MOVES).filter((move) => MOVES[move].from.includes(one.status));
  const properties = ["properties", "system_properties"].filter((name) => Object.keys(whole[name] ?? {}).length);
  return [el("div", { class: "title" }, el("h1", {}, `Letter of partition ${one.partition_id}, number ${grouped(one.sequence_number)} `, gone ? el("span", { class: "badge bad" }, "lost") : badge(one.status), one.erased_by ? [" ", badge("erased")] : null)),
    matter(gone ? "bad" : one.status === "exhausted" ? "warn" : one.status === "resolved" ? "good" : "", gone ? "The event of this letter is lost" : `${FAILED[one.error_class]}${one.error_at ? ` (at ${one.error_at})` : ""}`,
      [el("span", { class: "error" }, messageOf(one)), gone ? [LOST, " ", runbook("events-lost")] : NEXT[one.status](one)], gone ? "Act tonight: its publisher may still have it" : null),
    el("div", { class: "row actions" }, gone ? moveButton("discard", ask, { class: "grave" }) : el("a", { class: "go", href: `#/tasks?partition=${encodeURIComponent(one.partition_id)}&${alone}` }, "Try a dry run first"), allowed.includes("retry") && !gone ? moveButton("retry", ask) : null,
      el("a", { href: ledgerAt(one) }, "Its place in the ledger")), el("div", { class: "columns" }, card("Why", facts([
        ["Type", mono(typeOf(one))], ["Class", [badge(classOf(one)), " ", el("span", { class: "quiet" }, FAILED[one.error_class])]], ["Raised at", one.error_at === null ? null : mono(one.error_at)],
        ["Cause", el("a", { href: causeAt(causeOf(one.fingerprint)), title: causeOf(one.fingerprint) }, "all letters of this cause")],
        ["Transform", one.transform_version], ["Failed", dated(one.failed_at)], ["Attempts", attemptsOf(one, whole.history ?? [])],
        one.held_behind === null ? null : ["Waits for", el("a", { href: letterAt({ ...one, sequence_number: one.held_behind }) }, `${one.partition_id} / ${grouped(one.held_behind)}`)], one.due_at ? ["Due", dated(one.due_at)] : null,
        one.settled_at ? ["Settled", dated(one.settled_at)] : null, one.settled_why ? ["because", one.settled_why] : null])),
      card("Event", facts([["Partition", one.partition_id], ["Sequence number", grouped(one.sequence_number)], ["Enqueued", dated(one.enqueued_at)],
        ["Offset", mono(whole.offset)], keyOf(one) === "–" ? null : ["Partition key", keyOf(one)]]), whole.properties === null ? quiet("The properties are hidden.") : null,
      properties.map((name) => [el("h3", {}, capital(name.replace("_", " "))), el("pre", {}, JSON.stringify(whole[name], null, 2))]))), bodyCard(one, path, gone),
    historyCard(whole.history ?? []),
    allowed.includes("discard") && !gone ? card("Discard it", quiet("Only when you can do without this event. This is for good: no retry takes it up again."), moveButton("discard", ask)) : null,
  ].filter(Boolean);
}

/** What failed, by the class of the error. */
const FAILED = { poison: "The transform says that this event is at fault", unknown: "The transform failed on this event, which looks like a bug in it",
  reference: "A row that this event refers to is missing", refused: "The database refused the rows of this event", crash: "This event ended the process that tried it" };

/** What happens to a letter next, and what an operator can do, by its status. */
const NEXT = {
  exhausted: (one) => [`It is not tried again by itself. ${one.error_class === "poison" ? "Have a developer deploy a corrected transform" : "Mend the cause"}, then retry it; or `, el("a", { href: location.hash, onclick: (event) => { event.preventDefault(); document.querySelector("[aria-label^=Discard] button").focus(); } }, "discard it, at the end of this page"), ". "],
  waiting: () => "The app tries it again by itself when it is due: you need do nothing.", retrying: () => "The app is trying it again now.",
  held: () => "It was not tried yet, because it waits for an earlier letter of its partition key. Settle that letter first.",
  resolved: () => "A later try succeeded: nothing is left to do.", discarded: () => "An operator gave it up for good: nothing is left to do.",
};

/** Say how many attempts count towards the limit, as everywhere, and how many the history shows when it shows more. */
function attemptsOf(one, history) {
  const shown = history.filter((each) => TRIES.includes(each.kind)).length;
  if (one.attempts === 0 && shown === 0) return "none yet";
  return `${count(one.attempts)}${shown > one.attempts ? `; the history below has ${count(shown)}` : ""}`;
}

function bodyCard(one, path, gone) {
  if (gone) return card("Body", quiet(`The body is gone with the event (it had ${plural(one.body_bytes, "byte")}).`));
  if (one.erased_by) return card("Body", el("p", { id: "erased" }, "An ", el("a", { href: taskAt({ task_id: one.erased_by }) }, "erasure"),
    " blanked this letter. Its body is not shown again, although the hub may still have it."));
  const shown = el("div", { "aria-live": "polite" });
  const forms = { text: "Text", json: "JSON", hex: "Hex" };
  const buttons = Object.entries(forms).map(([form, word]) => button(word, () => reveal(form), { "aria-pressed": "false", "data-form": form }));
  const reveal = async (form) => {
    for (const other of buttons) other.setAttribute("aria-pressed", String(other.dataset.form === form));
    try {
      const { body } = await get(path, { body: form });
      shown.replaceChildren(body.shown === null ? quiet(body.fault) : el("pre", { id: "body" }, form === "hex" ? hexLines(body.shown) : body.shown));
      if (body.truncated) shown.append(quiet(`Only the first of ${count(body.bytes)} bytes are shown.`));
    } catch (problem) {
      shown.replaceChildren(fault(problem));
    }
  };
  return card("Body", quiet(`${plural(one.body_bytes, "byte")}. Show it as text, JSON or hex. The log of the app records who showed it.`),
  el("div", { class: "row" }, buttons), shown);
}

const hexLines = (hex) => (hex.match(/.{1,32}/g) ?? []).map((line, at) => `${(at * 16).toString(16).padStart(6, "0")}  ${line.match(/../g).join(" ")}`).join("\n");

function historyCard(history) {
  const line = (one) => el("li", {}, badge(one.status), " ", el("b", {}, KINDS[one.kind] ?? one.kind), " by ", one.done_by, ", ", ago(one.done_at),
    one.commit_number ? ` (commit ${count(one.commit_number)})` : "", one.why ? quiet(one.why) : null, one.error ? el("span", { class: "error" }, one.error) : null);
  return card("History", history.length ? el("ol", { class: "attempts" }, history.map(line)) : quiet("Nothing has happened to it since it failed."));
}

const [LISTED, COUNTED, MANY, OPEN] = [5, 20, 100, ["waiting", "retrying", "held", "exhausted"]]; // redrives listed, and read; letters from which on a limit is offered
/** A move: its words, and the statuses of the letters that it may take. */
const MOVES = {
  retry: { word: "Retry", done: "to be retried now", grave: false, from: ["waiting", "exhausted"],
    title: (number, where) => `Retry ${plural(number, "letter")}${where}?`, text: () => el("p", {}, "What fails again comes back here, so nothing is lost.") },
  discard: { word: "Discard", done: "discarded", grave: true, from: OPEN,
    title: (number, where) => `Discard ${plural(number, "letter")}${where} for good?`, text: (number) => el("p", {}, el("b", {}, "This cannot be undone."), ` The rows of ${number === 1 ? "its event" : "their events"} are never written, and no retry takes ${number === 1 ? "it" : "them"} up again. `
      + `The ledger keeps ${number === 1 ? "it" : "them"} as discarded, so the totals still add up.`) },
};

/** The choice of an order that takes the letters of a preview, and none that failed since. */
const asPreviewed = (filter, { failed_before }) => ({ filter: { ...filter, failed_before } });

/** Name the partition and the cause of the letters that a dialog asks about. */
const aboutOf = ({ partition_id: id }, cause) => ({ where: id ? ` of partition ${id}` : "", cause: cause ? el("p", { class: "error" }, `Cause: ${cause}`) : null });

/** Count the letters of a filter that a move would take now, and order them; without one, renew the page. */
async function orderOf(move, filter, again, about) {
  const found = await get("dead-letters/preview", { ...filter, move });
  await (found.count ? order(move, asPreviewed(filter, found), found.count, again, null, about) : again());
}

/** Ask for the count and the reason, and move the letters; a task that goes on is shown on its own page. */
async function order(move, chosen, number, again, rate = null, { where, cause } = aboutOf({}), warned = null) {
  const [how, id] = [MOVES[move], crypto.randomUUID()];
  let made = null;
  const act = async (expected, reason) => {
    const limit = rate?.value.trim() ? { per_second: Number(rate.value) } : {};
    made = await open("redrive", { move, ...chosen, expected_count: expected, reason, ...limit }, id);
    return isOver(made) ? outcome(made) : "The task goes on";
  };
  const more = rate && number >= MANY ? [el("details", {}, el("summary", {}, "Limit the speed"), field("Letters per second, at most (empty: no limit)", rate))] : [];
  if (!await confirm({ ...how, word: (now) => `${how.word} ${plural(now, "letter")}`, isTyped: how.grave, title: (now) => how.title(now, where), text: (now) => [cause, warned, how.text(now)], number, act, more })) return;
  if (isOver(made) && (move === "discard" || number === 1)) await again();
  else location.hash = taskAt(made); // it shows how the tries end
}

const isOver = (made) => made.ended_at !== null;
const outcome = (made) => [made.unmoved ? `${count(made.moved)} of ${plural(made.total, "letter")} ${MOVES[made.move].done}: ${count(made.unmoved)} had changed meanwhile`
  : `${plural(made.moved, "letter")} ${MOVES[made.move].done}`,
  made.came_later ? `${plural(made.came_later, "letter")} came after the preview and ${made.came_later === 1 ? "is" : "are"} not in it` : "",
  made.status === "done" ? "" : `the task is ${made.status}`].filter(Boolean).join("; ");

/** Show the newest redrives, if there are some. */
const redrivesCard = (tasks, groups) => (tasks.length ? card("Retries and discards so far", el("details", { open: !isNarrow() },
  el("summary", {}, `The last ${tasks.length === 1 ? "one" : count(tasks.length)}, of any letters`), tasksTable("Redrives", tasks, groups))) : "");

/** Offer to move all letters of a filter, after a preview. */
function moveAll(chosen, groups, again, canRetry, known) {
  const preview = el("div", { "aria-live": "polite" });
  const see = (move) => tried(preview, async () => {
    const found = await get("dead-letters/preview", { ...chosen, move });
    renew(preview, previewed(found, move, chosen, groups, again, known));
    preview.scrollIntoView({ block: "nearest" });
  });
  const moves = Object.entries(MOVES).filter(([move]) => move !== "retry" || canRetry);
  const number = (move) => groups.reduce((sum, one) => sum + (move === "retry" ? one.retryable : one.open), 0);
  return el("div", {}, el("div", { class: "row moves all" }, moves.map(([move, { word }]) =>
    button(`${word} ${groups.length === MOST_GROUPS ? "all" : number(move) === 1 ? "this one" : `${isNarrow() ? "" : "these "}${count(number(move))}`} …`, () => see(move), look(move, { id: `redrive-${move}` })))), preview);
}

/** True for a retry of letters like these: of the same partition and cause, as far as both are named. */
const isLike = ({ filter, letters }, chosen) => (filter ? ["partition_id", "fingerprint"].every((name) => !chosen[name] || !filter[name] || filter[name] === chosen[name])
  : !chosen.fingerprint && (!chosen.partition_id || letters.some((one) => one.partition_id === chosen.partition_id)));

/** Show what would be moved, and the button that asks why. Before a retry, say how the last ones ended. */
function previewed(found, move, chosen, groups, again, { tasks, runs }) {
  const { word, grave, text, title } = MOVES[move];
  const messages = new Map(groups.map((one) => [one.fingerprint, saidBy(one, "cause")]));
  const nameOf = (one) => messages.get(one.fingerprint) ?? `${typeOf(one)} (${one.fingerprint})`;
  const rate = el("input", { name: "per_second", inputmode: "numeric", size: 8, autocomplete: "off" });
  const columns = [["Cause", (one) => el("a", { class: "error", href: causeAt(one.fingerprint) }, nameOf(one)), "wide"], ["Class", (one) => badge(classOf(one))], ["Letters", (one) => count(one.letters), "amount"]];
  if (!found.count) return el("p", { id: "preview" }, "No letter of the filter can be moved.");
  const about = () => aboutOf(chosen, found.causes.length === 1 ? nameOf(found.causes[0]) : ""); // each place has its own elements
  const vain = vainOf(tasks.filter((one) => isLike(one, chosen)));
  const { words, isVain } = hopeOf(runs, [...groups.filter((one) => one.open), ...found.sample.map((sample) => ({ sample }))], found.count === 1);
  const needs = words || "They fail again unless their cause has been mended since.";
  const warned = () => (move === "retry" ? el("p", { class: vain || isVain ? "warned" : null }, vain ? `The last ${vain === 1 ? "retry" : `${count(vain)} retries`} of letters like these did not help. ` : "", needs) : null);
  const look = () => { Object.assign(document.querySelector("[aria-label='One by one'] details"), { open: true }).scrollIntoView(); };
  return el("div", { id: "preview", class: grave ? "matter ends" : "matter" }, el("p", { class: "words" }, title(found.count, about().where)), about().cause, warned(), text(found.count),
    quiet(`Nothing has happened yet: this is a preview. Next you ${grave ? `type ${count(found.count)} to confirm, and ` : ""}give a reason. Letters that fail from now on are left alone.`),
    el("div", { class: "row" }, button(`${word} ${plural(found.count, "letter")} …`, () => order(move, asPreviewed(chosen, found), found.count, again, rate, about(), warned()),
      { class: grave ? "grave" : vain || isVain ? null : "main", id: "redrive-start" }), button("Close the preview", () => document.getElementById("preview").remove()), button("Look at the letters first", look, { class: "plain" })),
    found.causes.length > 1 ? table("Causes of the letters", columns, found.causes) : null);
}
