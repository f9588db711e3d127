// The chart over time: lag and rate by minute, as the watch has stored them in SQL.

import { get } from "./api.js";
import { chart } from "./chart.js";
import { ago, card, count, duration, el, plural } from "./dom.js";

const MINUTES = 180;
const EVERY_MS = 10_000;
const BREAK_MS = 150_000; // a line ends where no watch came for longer than this

/** Return a reader of the minutes, which asks the app at most once in 10 s; a fault is in `fault`, beside older minutes. */
export function minutesOfApp() {
  const found = { minutes: [], fault: null };
  let askedAt = -Infinity;
  return async () => {
    if (performance.now() - askedAt >= EVERY_MS) {
      askedAt = performance.now();
      try {
        found.minutes = (await get("status/history", { minutes: MINUTES })).minutes;
        found.fault = null;
      } catch (problem) {
        found.fault = problem.detail ?? String(problem);
      }
    }
    return found;
  };
}

/** Show lag and rate over time; `lag` is that of this moment, null where the hub does not answer. */
export function overTime({ minutes, fault }, lag) {
  const points = (name) => minutes.filter((one) => one[name] !== null)
    .map((one) => ({ at: Date.parse(one.at), value: one[name] }));
  const lags = points("lag");
  const rates = points("rate");
  const isLate = minutes.length > 0 && Date.now() - Date.parse(minutes.at(-1).at) > BREAK_MS;
  return card("Over time",
    el("p", { class: "key-of-chart" },
      el("b", { class: "lag" }, `lag ${lag === null ? "unknown" : plural(lag, "event")}`), " · ",
      el("b", { class: "rate" }, rates.length && !isLate ? `${perSecond(rates.at(-1).value)} in the last minute` : "rate unknown")),
    chart([["lag", lags], ["rate", rates]], BREAK_MS),
    isLate ? el("p", { class: "fault", id: "late-watch" }, "The watch stored the last minute ", ago(minutes.at(-1).at), ".") : null,
    el("p", { class: "quiet", id: "scale" }, fault ? `The minutes were not read: ${fault}` : scales(lags, rates)));
}

const highest = (points) => Math.max(0, ...points.map((point) => point.value));
const perSecond = (rate) => `${count(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))} events/s`;

function scales(lags, rates) {
  if (lags.length === 0) return "No minute is stored yet. The watch stores one each minute.";
  const since = duration((lags.at(-1).at - lags[0].at) / 1000);
  return `${since} by minute. Each line has its own scale: lag to ${plural(highest(lags), "event")}, `
    + `rate to ${perSecond(highest(rates))}.`;
}
