// Purges: the last one, and a dry run, which counts the old rows of each table.

import { get, post, Problem } from "./api.js";
import { badge, button, card, count, dated, el, facts, fault, plural, renew, table } from "./dom.js";

const EVERY_MS = 1000;

/** Show the last purge, and offer a dry run. */
export async function purgesCard() {
  const [last] = (await get("purges", { limit: 1 })).purges;
  const found = el("div", { "aria-live": "polite" }, last ? shown(last) : el("p", {}, "No purge was requested."));
  const start = button("Count old rows", async () => {
    start.disabled = true;
    try {
      await follow(await post("purges", { reason: "a dry run from the operator's page" }), found);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.needsKey) throw problem;
      renew(found, fault(problem));
    }
    start.disabled = false;
  }, { id: "purge-count" });
  return card("Purges", el("p", { class: "quiet" },
    "A dry run counts the rows that are older than the days of the settings, and deletes nothing. The command line begins a real purge."),
  el("div", { class: "row actions" }, start), found);
}

/** Follow a job until it ends or the page was left. */
async function follow(job, found) {
  renew(found, shown(job));
  while (found.isConnected && job.status === "open") {
    await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
    job = await get(`purges/${job.purge_id}`);
    renew(found, shown(job));
  }
}

function shown(job) {
  const columns = [
    ["Table", (one) => el("span", { class: "mono" }, one.table)],
    ["Rows", (one) => count(one.rows), "amount"],
    ["Bytes", (one) => count(one.bytes), "amount"],
    ["Oldest", (one) => dated(one.oldest)],
    ["What stays", (one) => one.notes.join("; "), "wide"],
  ];
  const tables = job.tables.filter((one) => one.rows || one.notes.length);
  return el("div", { id: "purge" },
    el("p", { class: "verdict" }, badge(job.status), `${plural(job.rows, "row")} ${job.dry_run ? "counted" : "deleted"}`),
    job.fault ? fault({ detail: job.fault }) : null,
    facts([["Kind", job.dry_run ? "dry run: nothing was deleted" : "for real"], ["Requested by", job.requested_by],
      ["Why", job.reason], ["Requested", dated(job.requested_at)], ["Ended", dated(job.ended_at)]]),
    tables.length ? table("Tables of the purge", columns, tables) : null);
}
