// The chart of one kind of sensor over a day or a week: bars of readings, or ranges of measurements.

import { el, svg } from "./dom.js";

const HEIGHT = 132;
const BELOW = 18; // for the times
const LEFT = 30; // for the scale
const ABOVE = 8;
const QUARTER_MS = 900_000;
const WIDTH = 320; // until the width of the place is known
export const ALARMING_PPM = 70; // of carbon monoxide, as in transform.py

/** Make a drawing as wide as its place, and draw it again when that width changes. */
export function activityChart(kind, alerts, period, at, said) {
  const place = el("div", { class: "activity" });
  const draw = (width) => place.replaceChildren(drawn(kind, alerts, period, at, said, Math.max(200, Math.round(width))));
  draw(WIDTH);
  new ResizeObserver(([seen]) => { if (seen.contentRect.width) draw(seen.contentRect.width); }).observe(place);
  return place;
}

function drawn(kind, alerts, period, at, said, width) {
  const [since, until] = [Date.parse(period.since), Date.parse(period.until)];
  const step = period.step_minutes * 60_000;
  const top = ceiling(Math.max(...kind.steps.map((one) => (one.ppm ? one.ppm.most : one.readings))));
  const x = (time) => LEFT + (time - since) / (until - since) * (width - LEFT);
  const y = (value) => ABOVE + (1 - value / top) * (HEIGHT - ABOVE - BELOW);
  const thick = Math.max(1, x(since + step) - x(since) - (width > 500 ? 2 : 1));
  const bar = (from, value, name) => svg("rect", { class: name, x: from.toFixed(1), width: thick.toFixed(1),
    y: y(value).toFixed(1), height: Math.max(1, y(0) - y(value)).toFixed(1), rx: 1 });
  const bars = kind.steps.map((one) => {
    const from = x(Date.parse(one.at));
    const told = svg("title", {}, tell(one, at));
    return svg("g", {}, told, ...(one.ppm ? range(one.ppm, from, thick, y)
      : [bar(from, one.readings, "readings"), one.active ? bar(from, one.active, "active") : null]));
  });
  const inside = alerts.filter((one) => Date.parse(one.observed_at) >= since && Date.parse(one.observed_at) < until);
  const alarms = inside.map((one) => svg("circle", { class: "alarm", r: 3, cx: x(Date.parse(one.observed_at)).toFixed(1),
    cy: y(one.ppm ?? top).toFixed(1) }, svg("title", {}, `Alert, ${at.moment(one.observed_at)}${one.ppm === null ? "" : `: ${one.ppm} ppm`}`)));
  const limit = kind.ppm && top >= ALARMING_PPM ? [svg("line", { class: "limit", x1: LEFT, x2: width, y1: y(ALARMING_PPM), y2: y(ALARMING_PPM) }),
    svg("text", { class: "limit", x: width, y: y(ALARMING_PPM) - 4, "text-anchor": "end" }, `dangerous from ${ALARMING_PPM} ppm`)] : [];
  return svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": said },
    scale(top, width, y), marks(since, until, at, x, width), limit, bars, alarms);
}

function range(ppm, from, thick, y) {
  const [high, low] = [y(ppm.most), y(ppm.least)];
  return [svg("rect", { class: "range", x: from.toFixed(1), width: thick.toFixed(1), y: high.toFixed(1),
    height: Math.max(2, low - high).toFixed(1), rx: 1 }),
  svg("rect", { class: "active", x: from.toFixed(1), width: thick.toFixed(1), y: (y(ppm.mean) - 1).toFixed(1),
    height: 2 })];
}

const tell = (one, at) => `${at.moment(one.at)}: ${one.ppm ? `${one.ppm.least} to ${one.ppm.most} ppm`
  : `${one.active} active of ${one.readings}`}`;

/** Return the next round number: 1, 2 or 5 followed by zeros. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return power * ([1, 2, 5].find((digit) => digit * power >= value) ?? 10);
}

function scale(top, width, y) {
  return [0, top / 2, top].map((value) => [
    svg("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
    svg("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, Number.isInteger(value) ? value : "")]);
}

/** Mark local hours below a day, local midnights below a week. */
function marks(since, until, at, x, width) {
  const isDay = until - since <= 86_400_000;
  const found = [];
  for (let time = since; time < until; time += QUARTER_MS) {
    const [hour, minute] = at.hour(time).split(":").map(Number);
    if (minute === 0 && hour % (isDay ? 6 : 24) === 0) found.push(time);
  }
  return found.map((time) => {
    const text = isDay ? at.hour(time) : at.day(time);
    const anchor = x(time) + 17 > width ? "end" : "middle";
    return [svg("line", { class: "mark", x1: x(time), x2: x(time), y1: ABOVE, y2: HEIGHT - BELOW }),
      x(time) - 17 > LEFT ? svg("text", { x: x(time), y: HEIGHT - 4, "text-anchor": anchor }, text) : null];
  });
}
