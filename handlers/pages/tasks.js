// Tasks: what takes longer than one request. The list of them, the form of a new replay, and one with its progress.

import { get, post, Problem, tried } from "./api.js";
import { audit } from "./audits.js";
import { confirm } from "./confirm.js";
import { ago, badge, button, capital, card, choice, count, dated, el, facts, fault, field, pager, renew, table, taskAt } from "./dom.js";
import { erasure, erasuresCard } from "./erasures.js";
import { purge, purgesCard } from "./purges.js";
import { redrive } from "./redrives.js";
import { newReplay, replay } from "./replays.js";

const EVERY_MS = 1000;
const PAGE = 20;
const GONE = [400, 404];
const ENDED = ["done", "cancelled", "failed"];
const STATUSES = ["planned", "running", "paused", ...ENDED];
// A kind: its title, what of it is done, its own facts (lists of pairs), what stays when it is cancelled, more panels, what
// follows it beside them; in a list, a word for its status and its result; and whether something goes on after its end. A kind without words of its own shows its plain fields.
const KINDS = { replay, redrive, purge, audit, erasure };
const OTHER = { title: (task) => capital(task.kind), done: (task) => counted(task), facts: (task) => [plainFacts(task)],
  stays: "what it has done stays done" };
const MOVES = { pause: (kind) => `The ${kind} stops between two pieces, and can be resumed there.`,
  resume: (kind) => `The ${kind} continues where it was paused.`,
  cancel: (kind) => `The ${kind} ends for good; ${kindOf(kind).stays}.` };

const kindOf = (name) => KINDS[name] ?? OTHER;
const counted = (task) => `${count(task.done)} of ${count(task.total)}`;

/** The fields that only this kind has: they follow `history`, the last one of every kind. */
const plainFacts = (task) => Object.entries(task).slice(Object.keys(task).indexOf("history") + 1)
  .filter(([, value]) => !Array.isArray(value)).map(([name, value]) => [capital(name.replaceAll("_", " ")), plain(value)]);

function plain(value) {
  if (typeof value === "number") return count(value);
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([name, one]) => `${name} ${plain(one)}`).join(", ");
}

/** A table of tasks. */
export const tasksTable = (label, tasks) => table(label, [
  ["When", (one) => el("a", { class: "whole", href: taskAt(one) }, ago(one.requested_at))],
  ["Kind", (one) => [one.kind, one.move ? `: ${one.move}` : "", one.dry_run ? ", dry run" : ""]],
  ["Status", (one) => [badge(kindOf(one.kind).status?.(one) ?? one.status), one.fault ? el("p", { class: "quiet" }, one.fault) : null]],
  ["Result", (one) => kindOf(one.kind).result?.(one) ?? kindOf(one.kind).done(one)],
  ["By", (one) => one.requested_by],
  ["Why", (one) => one.reason],
], tasks);

export async function tasks(place, left, asked = "") {
  const given = new URLSearchParams(asked);
  const chosen = Object.fromEntries([...given].filter(([name]) => ["kind", "status"].includes(name)));
  const found = el("div", {});
  place.append(el("h1", {}, "Tasks"), newReplay(given), found, purgesCard(), erasuresCard());
  const show = (cursor, before) => tried(found, async () => {
    const page = await get("tasks", { ...chosen, limit: PAGE, cursor });
    if (!left.aborted) found.replaceChildren(list(page, cursor, before, show, chosen));
  });
  await show("", []);
}

function filterOf(chosen, kinds) {
  const named = (words) => [["", "all"], ...words.map((word) => [word, word])];
  const form = el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    location.hash = `#/tasks${asked.size ? `?${asked}` : ""}`;
  } }, field("Kind", choice("kind", named(kinds), chosen.kind)),
  field("Status", choice("status", named(STATUSES), chosen.status)), el("button", {}, "Filter"));
  return form;
}

function list(page, cursor, before, show, chosen) {
  const isFiltered = Object.keys(chosen).length > 0;
  return card("Tasks", page.tasks.length || isFiltered ? filterOf(chosen, page.kinds) : null, page.tasks.length ? tasksTable("Tasks", page.tasks)
    : isFiltered ? el("p", {}, "No task matches the filter.") : [el("p", {}, "No task has been requested yet."),
      el("p", { class: "quiet" }, "A replay begins here. Letters are retried or discarded on their page.")],
  pager(["Newer", "Older"], { cursor, before }, page.next, show));
}

export async function task(place, left, id) {
  const title = el("h1", {}, "Task");
  const [trouble, head, follows, more] = [1, 2, 3, 4].map(() => el("div", {}));
  place.append(title, trouble, head, follows, more);
  const shown = {};
  while (!left.aborted) {
    try {
      const found = await get(`tasks/${encodeURIComponent(id)}`);
      if (left.aborted) return;
      const [kind, isOver] = [kindOf(found.kind), ENDED.includes(found.status)];
      title.textContent = capital(found.kind);
      trouble.replaceChildren();
      renew(head, progress(found, kind, isOver));
      renew(more, ...(kind.more?.(found) ?? []), history(found));
      await kind.follow?.(follows, found, shown, isOver);
      if (isOver && !kind.goesOn?.(found)) return;
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.needsKey || GONE.includes(problem.status)) throw problem;
      trouble.replaceChildren(fault(problem)); // it may pass by itself
    }
    await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
  }
}

function progress(found, kind, isOver) {
  const allowed = isOver ? [] : [found.status === "paused" ? "resume" : "pause", "cancel"];
  return card(kind.title(found),
    el("p", { class: "verdict", id: "task-status" }, badge(found.status), kind.done(found)),
    el("progress", { max: Math.max(1, found.total), value: found.total ? Math.min(found.done, found.total) : 1,
      "aria-label": "progress" }),
    found.fault ? fault({ detail: found.fault }) : null,
    el("div", { class: "columns" }, ...kind.facts(found).map((pairs) => facts(pairs)),
      facts([["Requested by", found.requested_by], ["Why", found.reason], ["Requested", dated(found.requested_at)],
        ["Ended", dated(found.ended_at)]])),
    kind.notes?.(found) ?? null,
    el("div", { class: "row" }, allowed.map((move) => button(capital(move), () => ask(found, move))),
      kind.actions?.(found) ?? null));
}

function ask(found, move) {
  const version = found.app_transform_version;
  const isNew = move === "resume" && version && version !== found.transform_version;
  const named = isNew ? { transform_version: version } : {};
  const more = isNew ? ` What is left of it is done with the transform ${version}, not with ${found.transform_version}.` : "";
  confirm({ title: `${capital(move)} the ${found.kind}`, word: capital(move), number: null,
    text: () => MOVES[move](found.kind) + more, grave: move === "cancel",
    act: async (_, reason) => { await post(`tasks/${found.task_id}/${move}`, { reason, ...named }); return `${move}: done`; } });
}

const history = (found) => (found.history.length
  ? card("Moves of the task", el("ol", { class: "attempts" }, found.history.map(moved))) : null);

const moved = (one) => el("li", {}, badge(one.move), ` by ${one.by}, `, ago(one.at),
  one.why ? el("p", { class: "quiet" }, one.why) : null);
