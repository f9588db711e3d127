// Redrives: retry or discard all letters of a filter as a job, after a preview, and follow its progress.

import { get, post, Problem } from "./api.js";
import { confirm } from "./confirm.js";
import { ago, badge, button, card, count, dated, el, facts, fault, field, grouped, plural, renew, table }
  from "./dom.js";

const EVERY_MS = 1000;
const LISTED = 5;
const PAGE = 100;
const GONE = [400, 404];
const ENDED = ["done", "cancelled", "failed"];
const WORDS = { retry: "Retry all as a job", discard: "Discard all as a job" };
const EFFECTS = { retry: "due now, and their attempts begin again", discard: "discarded for good" };
const MOVES = { pause: "The redrive stops between two pieces, and can be resumed there.",
  resume: "The redrive continues where it was paused.",
  cancel: "The redrive ends for good; the letters that it moved stay moved, and are listed here." };
const address = (job) => `#/redrives/${encodeURIComponent(job.redrive_id)}`;
const share = (done, total) => (done > total ? `${count(done)}, ${count(done - total)} more than confirmed`
  : `${count(done)} of ${count(total)}`);
const capital = (word) => word[0].toUpperCase() + word.slice(1);

/** Offer a job over the letters of a filter, and show the newest jobs. */
export async function redrivesCard(chosen) {
  const jobs = (await get("redrives", { limit: LISTED })).redrives;
  const preview = el("div", { "aria-live": "polite" });
  const look = async (move) => {
    try {
      const found = await get("dead-letters/preview", { ...chosen, move });
      renew(preview, previewed(found, move, chosen));
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.needsKey) throw problem;
      renew(preview, fault(problem));
    }
  };
  const columns = [
    ["Requested", (one) => el("a", { href: address(one) }, ago(one.requested_at))],
    ["Move", (one) => one.move],
    ["Status", (one) => badge(one.status)],
    ["Moved", (one) => share(one.moved, one.total), "amount"],
    ["By", (one) => one.requested_by],
    ["Why", (one) => one.reason, "wide"],
  ];
  return card("Redrives",
    "partition_key" in chosen ? el("p", { class: "quiet" }, "A job over one partition key has no preview: use the buttons of its causes.")
      : el("div", { class: "row" }, Object.entries(WORDS).map(([move, word]) =>
        button(word, () => look(move), { class: move === "discard" ? "grave calm" : null, id: `redrive-${move}` }))),
    preview, jobs.length ? table("Redrives", columns, jobs) : null);
}

/** Show what a job would move, and a button that asks for the count and the reason. */
function previewed(found, move, chosen) {
  const columns = [
    ["Cause", (one) => el("a", { class: "mono", href: `#/letters?fingerprint=${encodeURIComponent(one.fingerprint)}` },
      one.fingerprint)],
    ["Class", (one) => badge(one.error_class)],
    ["Type", (one) => el("span", { class: "mono" }, one.error_type), "wide"],
    ["Letters", (one) => count(one.letters), "amount"],
  ];
  if (!found.count) return el("p", { id: "preview" }, "No letter of the filter can be moved.");
  return el("div", { id: "preview" },
    el("p", {}, `${plural(found.count, "letter")} will be ${EFFECTS[move]}.`),
    table("Causes of the letters", columns, found.causes),
    el("div", { class: "row" }, button(`${capital(move)} ${count(found.count)}`, () => start(found, move, chosen),
      { class: move === "discard" ? "grave" : "main", id: "redrive-start" })));
}

async function start(found, move, chosen) {
  let made = null;
  const rate = el("input", { name: "per_second", inputmode: "numeric", size: 8, autocomplete: "off" });
  const done = await confirm({ title: `${capital(move)} letters as a job`, word: capital(move), number: found.count,
    grave: move === "discard", more: [field("Letters per second, at most (empty: no limit)", rate)],
    text: (number) => `${plural(number, "letter")} will be ${EFFECTS[move]}, piece by piece.`,
    act: async (expected, reason) => {
      const limit = rate.value.trim() ? { per_second: Number(rate.value) } : {};
      made = await post("redrives", { move, filter: chosen, expected_count: expected, reason, ...limit });
      return "The redrive has begun";
    } });
  if (done) location.hash = address(made);
}

export async function redrive(place, left, id) {
  const [trouble, head, moved] = [1, 2, 3].map(() => el("div", {}));
  place.append(el("h1", {}, "Redrive"), trouble, head, moved);
  while (!left.aborted) {
    try {
      const job = await get(`redrives/${encodeURIComponent(id)}`);
      if (left.aborted) return;
      trouble.replaceChildren();
      renew(head, progress(job), history(job));
      if (ENDED.includes(job.status)) {
        await movedLetters(moved, id);
        return;
      }
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.needsKey || GONE.includes(problem.status)) throw problem;
      trouble.replaceChildren(fault(problem)); // it may pass by itself
    }
    await new Promise((resolve) => { setTimeout(resolve, EVERY_MS); });
  }
}

function progress(job) {
  const allowed = ENDED.includes(job.status) ? [] : [job.status === "paused" ? "resume" : "pause", "cancel"];
  const chosen = job.filter === null ? plural(job.total, "selected letter")
    : Object.entries(job.filter).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ") || "all letters";
  return card(capital(job.move),
    el("p", { class: "verdict", id: "redrive-status" }, badge(job.status), share(job.looked_at, job.total)),
    el("progress", { max: Math.max(1, job.total), value: Math.min(job.looked_at, job.total), "aria-label": "progress" }),
    job.fault ? fault({ detail: job.fault }) : null,
    el("div", { class: "columns" },
      facts([["Moved", count(job.moved)], ["Changed before, not moved", count(job.unmoved)], ["Letters", chosen],
        ["Letters per second, at most", job.per_second === null ? "no limit" : count(job.per_second)]]),
      facts([["Requested by", job.requested_by], ["Why", job.reason], ["Requested", dated(job.requested_at)],
        ["Ended", dated(job.ended_at)]])),
    el("div", { class: "row" }, allowed.map((move) => button(capital(move), () => ask(job, move)))));
}

const ask = (job, move) => confirm({ title: `${capital(move)} the redrive`, word: capital(move), number: null,
  text: () => `${MOVES[move]} It covers ${plural(job.total, "letter")}.`, grave: move === "cancel",
  act: async (_, reason) => { await post(`redrives/${job.redrive_id}/${move}`, { reason }); return `${move}: done`; } });

const history = (job) => (job.history.length ? card("Moves of the job", el("ol", { class: "attempts" }, job.history.map((one) =>
  el("li", {}, badge(one.move), ` by ${one.by}, `, ago(one.at), one.why ? el("p", { class: "quiet" }, one.why) : null))))
  : null);

async function movedLetters(place, id, cursor = "", before = []) {
  const page = await get(`redrives/${encodeURIComponent(id)}/letters`, { limit: PAGE, cursor });
  const columns = [
    ["Position", (one) => el("a", { href: `#/letters/${encodeURIComponent(one.partition_id)}/${one.sequence_number}` },
      `${one.partition_id} / ${grouped(one.sequence_number)}`)],
    ["Now", (one) => (one.status === null ? "gone" : badge(one.status))],
    ["Moved", (one) => ago(one.moved_at)],
  ];
  renew(place, card("Letters that it moved", page.letters.length ? table("Moved letters", columns, page.letters)
    : el("p", {}, "No letter was moved."),
  el("div", { class: "row" },
    before.length ? button("Earlier", () => movedLetters(place, id, before.at(-1), before.slice(0, -1))) : null,
    page.next ? button("Later", () => movedLetters(place, id, page.next, [...before, cursor])) : null)));
}
