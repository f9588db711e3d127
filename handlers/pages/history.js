// The charts over time: lag and rate by minute, as the watch has stored them in SQL.

import { get, seldom } from "./api.js";
import { chart } from "./chart.js";
import { ago, card, count, el, plural } from "./dom.js";

const MINUTES = 180;
const BREAK_MS = 150_000; // a line ends where no watch came for longer than this

/** Return a reader of the minutes; a fault is in `fault`, beside older minutes. */
export const minutesOfApp = () => seldom(async ({ minutes }) => {
  try {
    return { minutes: (await get("status/history", { minutes: MINUTES })).minutes, fault: null };
  } catch (problem) {
    return { minutes, fault: problem.detail ?? String(problem) };
  }
}, { minutes: [], fault: null });

/** Return the panels of lag and rate over time; `lag` is that of this moment, null where the hub does not answer. */
export function overTime({ minutes, fault }, lag) {
  const points = (name) => minutes.filter((one) => one[name] !== null)
    .map((one) => ({ at: Date.parse(one.at), value: one[name] }));
  const lags = points("lag");
  const rates = points("rate");
  const isLate = minutes.length > 0 && Date.now() - Date.parse(minutes.at(-1).at) > BREAK_MS;
  const late = isLate ? el("p", { class: "fault", id: "late-watch" }, "The watch stored the last minute ", ago(minutes.at(-1).at), ".") : null;
  const faulty = fault ? el("p", { class: "quiet", id: "minutes-fault" }, `The minutes were not read: ${fault}`) : null;
  const none = lags.length || lag === null ? null : el("p", { class: "quiet" }, "The chart begins after the first minute.");
  const rate = rates.length && !isLate ? `${perSecond(rates.at(-1).value)} in the last minute` : minutes.length ? "rate unknown" : "No rate yet";
  return [
    card("Lag", el("p", { class: "now lag" }, lag === null ? "Lag unknown: the hub does not answer" : `${plural(lag, "event")} behind`),
      chart("lag", lags, count, BREAK_MS), none, late, faulty),
    card("Rate", el("p", { class: "now rate" }, rate), chart("rate", rates, perSecond, BREAK_MS)),
  ];
}

const perSecond = (rate) => `${count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))} events/s`;
