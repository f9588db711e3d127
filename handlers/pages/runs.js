// The runs of the aggregation: how far its aggregates reach, the result of each run, and its failures.

import { confirm, get, post, repeat, seldom, tried } from "./api.js";
import { ago, badge, button, capital, card, count, duration, el, field, pager, plural, quiet, renew, table } from "./dom.js";
import { guideAt } from "./guides.js";

const EVERY_MS = 5000;
const PAGE = 20;
const OPEN = ["submitting", "submitted"];

/** Return a function that reads the newest runs now and then. Until the first answer there are none. */
export const runsOfApp = () => seldom(async (before) => (await get("aggregations", { limit: PAGE }).catch(() => ({ runs: before }))).runs, []);

export async function runs(place, left, id = "") {
  const head = el("div", {});
  const detail = el("div", {});
  const list = el("div", {});
  const page = { cursor: "", before: [], shown: id || null };
  place.append(el("h1", {}, "Aggregation"), head, detail, list);
  const again = async () => {
    const found = await get("aggregations", { limit: PAGE, cursor: page.cursor });
    if (left.aborted) return;
    if (!page.cursor) renew(head, standing(found, again));
    renew(list, listed(found, page, again));
    const wanted = page.shown ?? (found.runs.find((one) => OPEN.includes(one.status)) ?? [...differing(found), ...failed(found)][0])?.run_id;
    if (!wanted) renew(detail);
    else await tried(detail, async () => { // an address of no run is answered in its place, and hides nothing else
      const run = await get(`aggregations/runs/${encodeURIComponent(wanted)}`);
      if (!left.aborted) renew(detail, inspected(run, found.engine, again));
    });
  };
  await repeat(left, EVERY_MS, again);
}

/** Return the newest run of each aggregate whose rows differ from the ledger, or which ended without a result. */
const newestOf = (runs) => [...Map.groupBy(runs, (one) => one.job).values()].map(([newest]) => newest);
const differing = ({ runs }) => newestOf(runs.filter((one) => one.quality)).filter((one) => one.quality.fault);
const failed = ({ runs }) => newestOf(runs).filter((one) => one.status === "failed");
const stateOf = (run) => (run.quality?.fault ? "rows differ" : run.status);
const nameOf = (run) => run.job.replace(/^rows\./, "rows of ");

function standing(found, again) {
  const commits = Object.entries(found.reached).reduce((sum, [name, number]) => sum + number - (found.cut[name] ?? 0), 0);
  const works = found.engine !== "none";
  const missing = `${plural(commits, "commit")}, the oldest from ${duration(found.lag_seconds)} ago, ${commits === 1 ? "is" : "are"} not in the sums yet`;
  const isUsed = works || found.runs.length > 0;
  return card("State of the sums",
    differing(found).map((run) => el("p", { class: "verdict bad" }, `Do not rely on the sums of ${nameOf(run)} yet: the tables and the ledger count different rows in run ${count(run.number)}. `,
      el("a", { href: `#/runs/${encodeURIComponent(run.run_id)}` }, "What to do"))),
    failed(found).map((run) => el("p", { class: "verdict bad" }, `Run ${count(run.number)} of ${nameOf(run)} ended without a result. The sums lack its commits until the next run, which takes them over.`)),
    found.paused ? el("p", { class: "fault", id: "paused" },
      `Paused by ${found.paused.who}: ${found.paused.reason}`) : null,
    el("p", { class: `verdict ${commits || !works ? "" : "good"}`, id: "cut" }, !isUsed ? "This app makes no sums" : !commits ? "The sums have every commit"
      : `${missing}${works && !found.paused ? ": the next run adds them" : ""}`, "."),
    found.waiting ? el("p", { class: "quiet", id: "waiting" }, `Waiting for its run: ${found.waiting.kind} of `
      + `${daysOf(found.waiting)}, ordered by ${found.waiting.who}: ${found.waiting.reason}`) : null,
    isUsed ? quiet("Aggregation adds up rows by windows of time, such as 15 minutes. A run adds the new commits to them, and is seen whole or not at all.") : null,
    offers(found, again),
    found.history.length ? el("details", {}, el("summary", {}, "Orders"),
      table("Orders about the aggregation", ORDERS, found.history)) : null);
}

/** Offer the orders that can work, with a sentence that says what a step does; without an engine there is no step. */
function offers(found, again) {
  const works = found.engine !== "none";
  const said = works ? el("p", { class: "quiet", id: "step-does" }, "The timer takes a step every few minutes: it plans a "
    + "run, submits its Spark job, asks the engine for the result, or writes the result. The button takes "
    + "the next step at once.") : el("p", { id: "no-engine" }, `No Spark engine is set now (SPARK_ENGINE is none)${
    found.runs.length ? "; the runs below are from before, and the sums stay as they left them" : ". Nothing is wrong: events and rows need no engine"}.`);
  const order = fitting(found);
  return [said, el("div", { class: "row" },
    works ? button("Take the next step now", () => step(again), { "aria-describedby": "step-does" }) : null,
    found.paused ? button("Resume", () => ordered(RESUME, "aggregations/resume", {}, again)) : null,
    works && !found.paused ? button("Pause", () => ordered(PAUSE, "aggregations/pause", {}, again)) : null,
    found.waiting ? button("Withdraw the order", () => ordered(WITHDRAW, "aggregations/withdraw", {}, again)) : null,
    works && !found.waiting ? button(order.word, () => placed(order, again)) : null)];
}

const ORDERS = [["When", (one) => ago(one.at)],
  ["Order", (one) => [one.move.replaceAll("_", " "), one.days ? ` of ${one.days}` : ""]],
  ["By", (one) => one.by], ["Why", (one) => one.why, "wide"]];
const PAUSE = { title: "Pause the aggregation", word: "Pause",
  says: "Nothing is planned, submitted or committed until somebody resumes. A Spark job that runs goes on." };
const RESUME = { title: "Resume the aggregation", word: "Resume", says: "The next step goes on where it stands." };
const CANCEL = { title: "Cancel the job", word: "Cancel the job",
  says: "The engine is asked to end the job. The next attempt of the run follows." };
const DISCARD = { title: "Discard the run", word: "Discard the run", grave: true,
  says: "The run is closed without a result. The next run takes over its commits, and is half as large." };
const DISCARD_RESULT = { title: "Discard the staged result", word: "Discard the result", grave: true,
  says: "The result is never committed. The next attempt of the run follows." };

const WITHDRAW = { title: "Withdraw the order", word: "Withdraw", says: "The order ends. No run of it was planned." };
const REPAIR = { title: "Repair the windows of some days", word: "Repair days", path: "aggregations/repair",
  says: "A run computes the windows of these days again and replaces them. Increments go on before and after it." };
const BACKFILL = { title: "Begin the aggregate with a backfill", word: "Backfill", path: "aggregations/backfill",
  says: "One run computes the windows of these days from all rows. Increments begin after it." };
const fitting = (found) => (Object.keys(found.cut).length ? REPAIR : BACKFILL);
const daysOf = (one) => (one.since_day || one.until_day
  ? `${one.since_day ?? "the first day"} to ${one.until_day ?? "the last day"}` : "all days");

function placed(order, again) {
  const [since, until] = ["since_day", "until_day"].map((name) => el("input", { type: "date", name }));
  const id = crypto.randomUUID();
  const more = [field("First day, in UTC. Empty: all before.", since), field("Last day. Empty: all after.", until)];
  return confirm({ ...order, number: null, more, text: () => order.says,
    act: async (_, reason) => {
      await post(order.path, { order_id: id, reason, since_day: since.value || null, until_day: until.value || null });
      return "Ordered: the next step without an open run begins it";
    } }).then((done) => { if (done) again(); });
}

const ordered = (order, path, body, again, id = crypto.randomUUID()) => confirm({ ...order, number: null, text: () => order.says,
  act: async (_, reason) => {
    await post(path, { order_id: id, ...body, reason });
    return `Done: ${order.title.toLowerCase()}`;
  } }).then((done) => { if (done) again(); });

function inspected({ run, failures, staged_at: stagedAt }, engine, again) {
  const at = `aggregations/runs/${encodeURIComponent(run.run_id)}`;
  const discard = (order, what, place) => button(order.word, () => ordered(order, `${at}/discard`, { what }, again),
    { class: `grave ${place}` });
  return card(`Run ${count(run.number)}`,
    el("p", {}, `${nameOf(run)} `, badge(stateOf(run)), ` attempt ${count(run.attempt)}`, stagedAt && OPEN.includes(run.status) ? [", with a staged result of ", ago(stagedAt)] : "",
      run.engine_job_id ? [", the engine's job ", el("span", { class: "mono" }, run.engine_job_id)] : ""),
    run.quality ? qualityOf(run) : null,
    failures.length ? [el("p", { id: "failing" }, OPEN.includes(run.status) ? "The app tries again by itself, up to five attempts. A cause that lasts needs you: "
      : "Five attempts failed, or somebody discarded the run. The next run takes over its commits an hour later, or with the button at once. First end the cause: ", guided("Runbook", "aggregation-failed")),
    table("Failures of the run", FAILURES, failures)] : el("p", { class: "quiet" }, "No attempt of it failed."),
    OPEN.includes(run.status) ? el("div", { class: "row" },
      run.engine_job_id && engine !== "none" ? button("Cancel the job", () => ordered(CANCEL, `${at}/cancel`, {}, again)) : null,
      stagedAt ? discard(DISCARD_RESULT, "result", "apart") : null, discard(DISCARD, "run", stagedAt ? "" : "apart")) : null);
}

const guided = (words, heading) => el("a", { class: "whole", href: guideAt("runbook", heading), target: "_blank", rel: "noopener" }, words);

/** Say what the run counted; a fault is red, comes first, and has its remedy. */
const qualityOf = ({ quality: found }) => el("div", { id: "quality" },
  found.fault ? [el("p", { class: "fault" }, `Rows differ: ${found.fault}.`), el("p", {}, "What to do: ", el("a", { href: "#/" }, "audit the ledger"),
    ' with "the rows too", which names the numbers; ', el("a", { href: `#/tasks?partition=${found.partitions[0]?.partition.split("/")[1] ?? ""}` }, "replay them"),
    ", which brings lost rows back; then repair the days of these rows, here. ", guided("Runbook", "aggregation-quality"))] : null,
  el("p", {}, found.rows_ledger === null ? "The rows by the ledger are not known, because some commits are purged: " : `The ledger counts ${plural(found.rows_ledger, "row")}. The run found `,
    `${count(found.rows_read)} to sum${found.rows_elsewhere ? `, ${count(found.rows_elsewhere)} in other tables` : ""}${found.rows_removed ? `, and ${count(found.rows_removed)} that a replay removed since` : ""}.`),
  found.rows_late ? quiet(`${lateOf(found)}. Its sum has them now.`) : null);

/** Say how many rows arrived after their windows, which earlier runs had already written. */
const lateOf = (found) => (found.rows_late ? `${plural(found.rows_late, "row")} came long after their window had ended` : "");

const qualityCell = (found) => (found === null ? "–" : found.fault ? `${capital(found.fault)}.`
  : [found.rows_ledger === null ? "not compared, because some commits are purged" : "same rows", lateOf(found)].filter(Boolean).join(", "));

const FAILURES = [["When", (one) => ago(one.at)], ["Attempt", (one) => count(one.attempt), "amount"],
  ["What", (one) => one.why], ["Reason of the engine", (one) => one.reason ?? "–"],
  ["Log", (one) => [logOf(one), linkOf(one.link)], "wide"]];

const logOf = (one) => (one.log
  ? el("details", {}, el("summary", {}, "The end of the log"), el("pre", {}, one.log)) : null);

/** Only a web address becomes a link; a folder is shown as text. */
const linkOf = (link) => (link && /^https?:\/\//.test(link)
  ? el("a", { href: link, rel: "noreferrer", target: "_blank" }, "Open it in the engine")
  : el("span", { class: "mono" }, link ?? ""));

const step = (again) => confirm({ title: "Take the next step of the aggregation", word: "Take the step", number: null,
  text: () => "The app plans a run, submits its job, asks for its result, or writes the result: the next of these. "
    + "A second request changes nothing.",
  asksWhy: false,
  act: async () => {
    const done = await post("aggregations", {});
    return `Done: ${done.did.join(", ") || "no step was due"}`;
  } }).then((done) => { if (done) again(); });

const TIME = { submitting: "intent_at", submitted: "submitted_at", committed: "closed_at", failed: "closed_at" };

function listed(found, page, again) {
  const columns = [
    ["Run", (one) => el("a", { href: `#/runs/${encodeURIComponent(one.run_id)}` }, count(one.number)), "amount"],
    ["Aggregate", nameOf],
    ["Kind", (one) => (one.kind === "increment" ? "new commits" : `${one.kind} of ${daysOf(one)}`)],
    ["Status", (one) => [badge(stateOf(one)), one.attempt > 1 ? ` attempt ${count(one.attempt)}` : ""]],
    ["When", (one) => ago(one[TIME[one.status]] ?? one.planned_at)],
    ["Took", (one) => took(one), "amount"],
    ["Commits", (one) => count(commitsOf(one)), "amount"],
    ["Rows", (one) => rowsOf(one), "amount"],
    ["Windows", (one) => (one.windows === null ? "–" : count(one.windows)), "amount"],
    ["Against the ledger", (one) => qualityCell(one.quality), "wide"],
    ["Engine", (one) => one.engine, "minor"],
    ["", (one) => (one.failure ? el("span", { class: "error" }, one.failure) : null), "wide"],
  ];
  const turn = (cursor, before) => { Object.assign(page, { cursor, before }); again(); };
  return card("Runs", ...(found.runs.length ? [table("Aggregation runs", columns, found.runs)] : none(found)),
  pager(["Newer", "Older"], page, found.next, turn));
}

/** Say that there is no run, and what makes the first one. */
const none = ({ engine }) => (engine === "none" ? [el("p", {}, "There are no runs."),
  el("p", { class: "quiet" }, "To have sums, name a Spark engine in the setting SPARK_ENGINE, and start the app again.")]
  : [el("p", {}, "No run is planned yet."),
    el("p", { class: "quiet" }, "The timer plans the first run when there are commits to sum. To plan it now, take the next step above.")]);

/** The rows that the ledger counts for a run: one number, here and with its quality. */
const rowsOf = (run) => { const rows = run.quality?.rows_ledger ?? run.rows_planned; return rows === null ? "–" : count(rows); };

const commitsOf = (run) => Object.entries(run.cut_to).reduce((sum, [name, to]) => sum + to - (run.cut_from[name] ?? 0), 0);

const took = (run) => (run.closed_at ? duration((Date.parse(run.closed_at) - Date.parse(run.planned_at)) / 1000) : "–");
