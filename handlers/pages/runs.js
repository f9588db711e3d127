// The runs of the aggregation: how far its aggregates reach, the result of each run, and its failures.

import { confirm, get, open, post, repeat, seldom, tried } from "./api.js";
import { ago, badge, button, capital, card, clock, count, duration, el, field, isNarrow, pager, plural, quiet, renew, runbook, table, taskAt } from "./dom.js";
import { who } from "./tasks.js";

const [EVERY_MS, PAGE] = [5000, 20];
const [ATTEMPTS, REST_MS] = [5, 3_600_000]; // of a run, and before the next one
const OPEN = ["submitting", "submitted"];

/** Return a function that reads the newest runs now and then. Until the first answer there are none. */
export const runsOfApp = () => seldom(async (before) => (await get("aggregations", { limit: PAGE }).catch(() => ({ runs: before }))).runs, []);

export async function runs(place, left, id = "") {
  const [head, detail, list] = [1, 2, 3].map(() => el("div", {}));
  const page = { cursor: "", before: [], shown: id || null };
  place.append(el("h1", {}, "Aggregation"), head, detail, list);
  const again = async () => {
    const found = await get("aggregations", { limit: PAGE, cursor: page.cursor });
    const wanted = page.shown ?? (openOf(found) ?? [...differing(found), ...failed(found)][0])?.run_id;
    let seen = null;
    const read = async () => { seen = await get(`aggregations/runs/${encodeURIComponent(wanted)}`); };
    const isRead = !wanted || await tried(detail, read); // an address of no run is answered in its place, and hides nothing else
    if (left.aborted) return;
    if (!page.cursor) renew(head, ...standing(found, seen, again));
    if (isRead) renew(detail, seen && inspected(seen, found, again));
    renew(list, found.runs.length ? listed(found, page, again) : null);
  };
  await repeat(left, EVERY_MS, again);
}

/** Return the open run; the newest run of each aggregate whose rows differ from the ledger, or which ended without a result. */
const openOf = ({ runs }) => runs.find((one) => OPEN.includes(one.status));
const newestOf = (runs) => [...Map.groupBy(runs, (one) => one.job).values()].map(([newest]) => newest);
const differing = ({ runs }) => newestOf(runs.filter((one) => one.quality)).filter((one) => one.quality.fault);
const failed = ({ runs }) => newestOf(runs).filter((one) => one.status === "failed");
const discardOf = (run, { history }) => history.find((one) => one.run_id === run.run_id && one.move === "discard_run");
const stateOf = (run, found) => (run.quality?.fault ? "rows differ" : run.status === "failed" && discardOf(run, found) ? "discarded" : run.status);
const KEY_HOLDER = "an operator with the access key";
const by = (name) => who(name, KEY_HOLDER);
const nameOf = (run) => run.job.replace(/^rows\./, "rows of ");
const guided = (section) => el("p", {}, runbook(section));
const lateOf = (run) => `The ${run.job.startsWith("rows.") ? "" : "sums of "}${nameOf(run)} are ${{ increment: "late", repair: "not repaired yet", backfill: "not there yet" }[run.kind]}: run ${count(run.number)}`;
const lead = (tone, when, words, ...more) => el("div", { class: `matter ${tone}` }, el("p", { class: "when" }, when), el("p", { class: "words" }, words), more);
const detail = (...said) => el("p", { class: "detail" }, ...said);

function standing(found, seen, again) {
  const commits = Object.entries(found.reached).reduce((sum, [name, number]) => sum + number - (found.cut[name] ?? 0), 0);
  const [works, now, wrong, [without]] = [found.engine !== "none", openOf(found), differing(found), failed(found)];
  const missing = `${plural(commits, "commit")}, ${commits === 1 ? "" : "the oldest "}from ${duration(found.lag_seconds)} ago, ${commits === 1 ? "is" : "are"} not in the sums yet`;
  const isUsed = works || found.runs.length > 0;
  const leads = [...wrong.map((run) => differs(run, works, () => placed(REPAIR, again))), now && now.attempt > 1 ? tryingAgain(now, seen) : null,
    ...failed(found).map((run) => ended(run, found, seen, again))].filter(Boolean);
  const nextRun = now ? `run ${count(now.number)}, which is under way,` : without ? `the next run, at about ${nextAt(without)},` : "the next run, within minutes,";
  const next = !works || found.paused ? "" : `: ${nextRun} adds ${commits === 1 ? "it" : "them"}${wrong.length ? ", but brings no missing row back" : ""}`;
  return [...leads, card("Are the sums up to date?",
    found.paused ? el("p", { class: "fault", id: "paused" }, `Paused by ${by(found.paused.who)}: ${found.paused.reason}`) : null,
    el("p", { class: leads.length ? "" : `verdict ${commits && isUsed ? "" : "good"}`, id: "cut" }, !isUsed ? "This app makes no sums: there is nothing to do" : commits ? `${!works || found.paused || leads.length || found.lag_seconds > 900 ? "No" : "Nearly"}: ${missing}${next}` : wrong.length ? "The sums have every commit, and are wrong: see above" : "Yes: the sums have every commit", "."),
    found.waiting ? el("p", { class: "quiet", id: "waiting" }, `Waiting for its run: ${found.waiting.kind} of ${daysOf(found.waiting)}, ordered by ${by(found.waiting.who)}: ${found.waiting.reason}`) : null,
    offers(found, again),
    quiet(`As of ${clock(Date.now())}. A sum adds up the rows of a window of time, such as 15 minutes. A run of a Spark job adds new commits, which are the batches of events that were written, and is seen whole or not at all.`),
    found.history.length ? el("details", { open: !isNarrow() && Boolean(without && discardOf(without, found)) }, el("summary", {}, "What operators did here"), table("Orders about the aggregation", ORDERS, found.history.map((one, index, all) => (one.move === "withdraw" ? { ...one, move: `withdraw the ${all.slice(index).find((order) => order.days)?.move ?? "order"}` } : one)))) : null)];
}

/** Say how many rows the tables have too few or too many, and how to mend that, step by step. */
function differs(run, works, repair) {
  const { partitions: places } = run.quality;
  const [ids, task] = [places.map((one) => one.partition.split("/")[1]), { rows: true, ...(places.length === 1 ? { partition_id: places[0].partition.split("/")[1] } : {}) }];
  const where = ids.length === 1 ? `partition\u00a0${ids[0]}` : plural(ids.length, "partition");
  return lead("bad", "Act tonight", `${sizeOf(run.quality)} in ${where}: do not rely on the sums of ${nameOf(run)}`,
    detail(`Run ${count(run.number)} found this `, ago(run.closed_at ?? run.planned_at), `: ${run.quality.fault}. Most likely somebody changed rows by hand. The next runs do not mend it. Steps 1 and 2 tell the days whose sums are wrong.`),
    el("ol", { id: "remedy" },
      el("li", {}, button(`Audit the rows of ${where}`, async () => { location.hash = taskAt(await open("audit", { ...task, reason: `rows differ in run ${run.number}` })); }, { class: "go" }),
        " finds the sequence numbers. It changes nothing."),
      el("li", {}, el("a", { class: "go", href: `#/tasks?partition=${ids.join(",")}&first=` }, `Replay events of ${where}`), " brings missing rows back: enter the numbers that the audit found. A dry run comes first, and shows the days of the rows."),
      el("li", {}, works ? button("Repair days", repair, { class: "go" }) : "Repair days", " sums these days again", works ? "." : ", once a Spark engine is set.")),
    guided("aggregation-quality"));
}

export const sizeOf = ({ rows_difference: by }) => `${plural(Math.abs(by), "row")} ${by < 0 ? "" : "too many "}${Math.abs(by) === 1 ? "is" : "are"} ${by < 0 ? "missing" : "stored"}`;

/** Return the failure of the attempt before the last one, if `seen` is this run with its failures; say it, and what ends such a cause. */
const lastOf = (run, seen) => (seen?.run.run_id === run.run_id && seen.failures.find((one) => one.attempt < run.attempt)) || null;
const failing = (last) => last && detail(el("span", { id: "failing" }, `Attempt ${count(last.attempt)} failed `, ago(last.at), `: ${last.why}${last.reason ? `. The Spark engine said: ${last.reason}` : ""}.`));
const remedy = (cause) => (/no free node|capacity|vcores|quota/i.test(cause) ? ["see that the Spark pool has free nodes: end other jobs, or add nodes", ". A job that waits for a node looks as if it hangs"] : ["end this cause", ""]);
const nextAt = (run) => clock(Date.parse(run.closed_at) + REST_MS, false);

function tryingAgain(run, seen, last = lastOf(run, seen)) {
  return lead("warn", "Can wait until morning", `${lateOf(run)} tries again, with attempt ${count(run.attempt)} of ${ATTEMPTS}`,
    failing(last), detail(`There is nothing to do while this attempt runs, and no row is lost. If it fails in the same way, ${remedy(last?.reason)[0]}. After attempt ${ATTEMPTS} the run ends as failed, and the next run begins an hour later.`), guided("aggregation-failed"));
}

/** Say of a run without a result that sums are late, who discarded it or why it failed, what to do, and when the next one begins. */
function ended(run, found, seen, again) {
  const [discard, last] = [discardOf(run, found), lastOf(run, seen)];
  const next = found.paused ? ["The next run begins after the pause."] : [found.engine === "none" ? null : stepButton(again), ` begins the next run. By itself it begins at about ${nextAt(run)}, an hour after this one${discard ? "" : ", and may fail in the same way"}.`];
  return lead("warn", discard && !last ? "Nothing to do" : "Can wait until morning", `${lateOf(run)} ${discard ? "was discarded" : `failed after ${plural(run.attempt, "attempt")}`}`,
    detail(discard ? [`${capital(by(discard.by))} discarded it `, ago(discard.at), `, in attempt ${count(run.attempt)}${run.engine_job_id ? `, whose job ${run.engine_job_id} had run for ${duration((Date.parse(discard.at) - Date.parse(run.submitted_at)) / 1000)}` : ""}: “${discard.why}”.`] : `${capital(run.failure ?? "")}.`), discard && failing(last),
    detail(`No row is lost: its ${plural(commitsOf(run), "commit")} ${commitsOf(run) === 1 ? "waits" : "wait"} for the next run.`),
    discard && !last ? detail(next) : el("ol", {}, el("li", {}, `${capital(remedy(`${run.failure} ${last?.reason}`).join(""))}.`), el("li", {}, next)),
    guided("aggregation-failed"));
}

const stepButton = (again, look = { class: "go" }) => button("Take the next step now", () => confirm({ title: "Take the next step of the aggregation", word: "Take the step", number: null,
  text: () => "The app plans a run, submits its job, asks for its result, or writes the result: the next of these. A second request changes nothing.",
  asksWhy: false, act: async () => `Done: ${(await post("aggregations", {})).did.join(", ") || "no step was due"}` }).then((done) => { if (done) again(); }), { ...look, "aria-describedby": "step-does" });

/** Offer the orders that can work, with a sentence that says what a step does; without an engine there is no step. */
function offers(found, again) {
  const [works, order, rests] = [found.engine !== "none", fitting(found), failed(found).length > 0 && !found.paused]; // then the lead has the step
  return [el("div", { class: "row" },
    found.paused ? button("Resume", () => ordered(RESUME, "aggregations/resume", {}, again)) : works ? button("Pause", () => ordered(PAUSE, "aggregations/pause", {}, again)) : null,
    found.waiting ? button("Withdraw the order", () => ordered(WITHDRAW, "aggregations/withdraw", {}, again)) : null,
    works && !found.waiting && !differing(found).length ? button(order.word, () => placed(order, again)) : null, works && !rests ? stepButton(again, {}) : null),
  works ? el("p", { class: "quiet", id: "step-does" }, `The app takes a step every few minutes: it plans a run, submits its Spark job, asks for the result, or writes it. ${rests ? "After a run without a result it first waits an hour." : "“Take the next step now” only saves these minutes."}`)
    : el("p", { id: "no-engine" }, `No Spark engine is set (SPARK_ENGINE is none)${found.runs.length ? "; the runs below are from before, and the sums stay as they left them"
      : ". Events and rows need no engine. To have sums, name one in SPARK_ENGINE, and start the app again"}.`)];
}

const ORDERS = [["When", (one) => ago(one.at)], ["Order", (one) => [one.move.replaceAll("_", " "), one.days ? ` of ${one.days}` : ""]], ["By", (one) => by(one.by)], ["Why", (one) => one.why, "wide"]];
const PAUSE = { title: "Pause the aggregation", word: "Pause", done: "The aggregation is paused.", says: "Nothing is planned, submitted or committed until somebody resumes. A Spark job that runs goes on." };
const RESUME = { title: "Resume the aggregation", word: "Resume", done: "The aggregation goes on.", says: "The next step goes on where it stands." };
const CANCEL = { title: "Cancel the job", word: "Cancel the job", done: "The engine was asked to end the job.", says: "The engine is asked to end the job. The next attempt of the run follows." };
const DISCARD = { title: "Discard the run", word: "Discard the run", done: "The run is discarded.", grave: true, says: "The run is closed without a result. The next run takes over its commits, and is half as large." };
const DISCARD_RESULT = { title: "Discard the staged result", word: "Discard the result", done: "The result is discarded.", grave: true, says: "The result is never committed. The next attempt of the run follows." };
const WITHDRAW = { title: "Withdraw the order", word: "Withdraw", done: "The order is withdrawn.", says: "The order ends. No run of it was planned." };
const REPAIR = { title: "Repair the windows of some days", word: "Repair days", path: "aggregations/repair", says: "A run computes the windows of these days again and replaces them. Runs of new commits go on before and after it. Both days empty: all days, which takes longest." };
const BACKFILL = { title: "Begin the aggregate with a backfill", word: "Backfill", path: "aggregations/backfill", says: "One run computes the windows of these days from all rows. Runs of new commits begin after it." };
const fitting = (found) => (Object.keys(found.cut).length ? REPAIR : BACKFILL);
const daysOf = (one) => (one.since_day || one.until_day ? `${one.since_day ?? "the first day"} to ${one.until_day ?? "the last day"}` : "all days");

function placed(order, again) {
  const [since, until] = ["since_day", "until_day"].map((name) => el("input", { type: "date", name }));
  const id = crypto.randomUUID();
  const more = [field("First day, in UTC. Empty: all before.", since), field("Last day. Empty: all after.", until)];
  return confirm({ ...order, number: null, more, text: () => order.says,
    act: async (_, reason) => {
      await post(order.path, { order_id: id, reason, since_day: since.value || null, until_day: until.value || null });
      return "Ordered: its run begins with the next step after the open run, if there is one.";
    } }).then((done) => { if (done) again(); });
}

const ordered = (order, path, body, again, id = crypto.randomUUID()) => confirm({ ...order, number: null, text: () => order.says,
  act: async (_, reason) => { await post(path, { order_id: id, ...body, reason }); return order.done; } }).then((done) => { if (done) again(); });

function inspected({ run, failures: all, staged_at: stagedAt }, found, again) {
  const [at, isOpen] = [`aggregations/runs/${encodeURIComponent(run.run_id)}`, OPEN.includes(run.status)];
  const [attempts, isCancelled] = [table("Attempts of the run", FAILURES, isOpen ? [{ at: run.submitted_at ?? run.intent_at, attempt: run.attempt, why: "under way since then" }, ...all] : all), isOpen && run.engine_job_id && found.engine !== "none"];
  const discard = (order, what, place) => button(order.word, () => ordered(order, `${at}/discard`, { what }, again), { class: `grave ${place}` });
  return card(`Run ${count(run.number)}`,
    el("p", {}, `${nameOf(run)} `, badge(stateOf(run, found)), isOpen ? ` attempt ${count(run.attempt)} of ${ATTEMPTS}` : ` after ${plural(run.attempt, "attempt")}`, stagedAt && isOpen ? [", with a staged result of ", ago(stagedAt)] : "",
      run.engine_job_id ? [`, ${isOpen ? "" : "last "}as job ${run.engine_job_id} of the Spark engine `, run.engine] : "", "."),
    run.quality ? qualityOf(run) : null,
    !all.length && !isOpen ? null : isOpen || !isNarrow() ? attempts : el("details", {}, el("summary", {}, "Its attempts"), attempts),
    isOpen ? quiet(isCancelled ? "Cancel the job when it hangs: this attempt ends, and the next one begins. " : "", stagedAt ? "Discard the result: the same, when the result is wrong. " : "",
      "Discard the run: it ends without a result, and the next run is half as large. Do so only when the run is too large for its engine.") : null,
    isOpen ? el("div", { class: "row" },
      isCancelled ? button("Cancel the job", () => ordered(CANCEL, `${at}/cancel`, {}, again)) : null,
      stagedAt ? discard(DISCARD_RESULT, "result", "apart") : null, discard(DISCARD, "run", stagedAt ? "" : "apart")) : null);
}

/** Say what the run added up. */
const qualityOf = ({ quality: found }) => el("div", { id: "quality" },
  el("p", {}, `It added up ${plural(found.rows_read, "row")}${found.rows_elsewhere ? `, beside ${count(found.rows_elsewhere)} in other tables` : ""}${
    found.rows_removed ? ` and ${count(found.rows_removed)} that a replay removed since` : ""}. `, capital(against(found)), "."),
  found.rows_late ? quiet(`${plural(found.rows_late, "row")} came late, long after the window of time that they belong to. The sums have them.`) : null);

/** Compare the rows of a run with the ledger. */
const against = (found) => (found.rows_ledger === null ? "not compared with the ledger, because some commits are purged" : found.fault ? sizeOf(found)
  : "the ledger counts the same rows");

const resultOf = (run, found) => (run.quality ? capital(against(run.quality)) : discardOf(run, found) ? `Discarded: “${discardOf(run, found).why}”`
  : run.failure ? el("span", { class: "error" }, run.failure) : "–");

const FAILURES = [["When", (one) => ago(one.at)], ["Attempt", (one) => count(one.attempt), "amount"], ["What happened", (one) => one.why.replace(/unverified \(key holder\)/, KEY_HOLDER), "wide"], ["The engine says", (one) => one.reason ?? "–", "wide"], ["Log", (one) => (one.log || one.link ? [logOf(one), linkOf(one.link)] : ""), "wide"]];

const logOf = (one) => (one.log ? el("details", {}, el("summary", {}, "The end of the log"), el("pre", {}, one.log)) : null);

/** Only a web address becomes a link; a folder is shown as text. */
const linkOf = (link) => (link && /^https?:\/\//.test(link) ? el("a", { href: link, rel: "noreferrer", target: "_blank" }, "Open it in the engine")
  : el("span", { class: "mono" }, link ?? ""));

const TIME = { submitting: "intent_at", submitted: "submitted_at", committed: "closed_at", failed: "closed_at" };

function listed(found, page, again) {
  const columns = [
    ["Run", (one) => el("a", { href: `#/runs/${encodeURIComponent(one.run_id)}` }, count(one.number)), "amount"],
    ["Aggregate", nameOf], ["Kind", (one) => (one.kind === "increment" ? "new commits" : `${one.kind} of ${daysOf(one)}`)],
    ["Status", (one) => [badge(stateOf(one, found)), one.attempt > 1 ? ` attempt ${count(one.attempt)}` : ""]],
    ["Last step", (one) => ago(one[TIME[one.status]] ?? one.planned_at)],
    ["Took", took, "amount"], ["Commits", (one) => count(commitsOf(one)), "amount"], ["Rows", rowsOf, "amount"],
    ["Windows", (one) => (one.windows === null ? "–" : count(one.windows)), "amount"],
    ["Result", (one) => resultOf(one, found), "wide"], ["Engine", (one) => one.engine, "minor"],
  ];
  const turn = (cursor, before) => { Object.assign(page, { cursor, before }); again(); };
  return card("Runs", table("Aggregation runs", columns, found.runs), pager(["Newer", "Older"], page, found.next, turn));
}

/** The rows of a run by the ledger, and how many of them were found if they differ. */
const rowsOf = ({ quality: of, rows_planned: planned }) => (of?.fault ? `${count(of.rows_ledger + of.rows_difference)} of ${count(of.rows_ledger)}`
  : planned === null && !of?.rows_ledger ? "–" : count(of?.rows_ledger ?? planned));

const commitsOf = (run) => Object.entries(run.cut_to).reduce((sum, [name, to]) => sum + to - (run.cut_from[name] ?? 0), 0);

const took = (run) => (run.closed_at ? duration((Date.parse(run.closed_at) - Date.parse(run.planned_at)) / 1000) : "–");
