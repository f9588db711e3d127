// The runs of the aggregation: its cut, the distance to the checkpoints, and the result of each run.

import { get, post } from "./api.js";
import { confirm } from "./confirm.js";
import { badge, button, card, count, el, fault, instant, plural, renew, table } from "./dom.js";

const EVERY_MS = 5000;
const PAGE = 20;

export async function runs(place, left) {
  const head = el("div", {});
  const list = el("div", {});
  const page = { cursor: "", before: [] };
  place.append(el("h1", {}, "Aggregation"), head, list);
  const again = async () => {
    const found = await get("aggregations", { limit: PAGE, cursor: page.cursor });
    if (left.aborted) return;
    renew(head, standing(found, again));
    renew(list, listed(found, page, again));
  };
  while (!left.aborted) {
    try {
      if (!document.hidden) await again();
    } catch (problem) {
      renew(head, fault(problem));
    }
    await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
  }
}

function standing(found, again) {
  const behind = Object.entries(found.reached).map(([name, number]) => number - (found.cut[name] ?? 0));
  const commits = behind.reduce((sum, one) => sum + one, 0);
  return card("Cut",
    el("p", { class: `verdict ${commits ? "" : "good"}`, id: "cut" }, commits
      ? `${plural(commits, "commit")} behind the checkpoints` : "Level with the checkpoints"),
    el("p", { class: "quiet" }, "A run covers the commits between two cuts. Its sums are added in the transaction that "
      + "moves the cut."),
    el("div", { class: "row" }, button("Take a step now", () => step(again))));
}

const step = (again) => confirm({ title: "Advance the aggregation by a step", word: "Take a step", number: null,
  text: () => "The next step of the timer: plan, submit, check, or commit. A second request changes nothing.",
  asksWhy: false,
  act: async () => {
    const done = await post("aggregations", {});
    return `Done: ${done.did.join(", ") || "no step was due"}`;
  } }).then((done) => { if (done) again(); });

const TIME = { submitting: "intent_at", submitted: "submitted_at", committed: "closed_at", failed: "closed_at" };

function listed(found, page, again) {
  const columns = [
    ["Run", (one) => count(one.number), "amount"],
    ["Status", (one) => badge(one.status)],
    ["When", (one) => instant(one[TIME[one.status]] ?? one.planned_at)],
    ["Took", (one) => took(one), "amount"],
    ["Commits", (one) => count(commitsOf(one)), "amount"],
    ["Readings", (one) => (one.readings === null ? "–" : count(one.readings)), "amount"],
    ["Windows", (one) => (one.windows === null ? "–" : count(one.windows)), "amount"],
    ["Attempt", (one) => count(one.attempt), "amount"],
    ["Engine", (one) => [one.engine, one.engine_job_id ? el("span", { class: "mono" }, ` ${one.engine_job_id}`) : ""]],
    ["", (one) => (one.failure ? el("span", { class: "error" }, one.failure) : null), "wide"],
  ];
  const turn = (cursor, before) => { Object.assign(page, { cursor, before }); again(); };
  return card("Runs", found.runs.length ? table("Aggregation runs", columns, found.runs)
    : el("p", {}, "No run is planned yet. Runs need SPARK_ENGINE."),
  el("div", { class: "row" },
    page.before.length ? button("Newer", () => turn(page.before.at(-1), page.before.slice(0, -1))) : null,
    found.next ? button("Older", () => turn(found.next, [...page.before, page.cursor])) : null));
}

function commitsOf(run) {
  return Object.entries(run.cut_to).reduce((sum, [name, to]) => sum + to - (run.cut_from[name] ?? 0), 0);
}

function took(run) {
  if (!run.closed_at) return "–";
  return `${count(Math.round((Date.parse(run.closed_at) - Date.parse(run.planned_at)) / 1000))} s`;
}
