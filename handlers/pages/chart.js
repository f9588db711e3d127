// A small chart: lines over time, each scaled to its own highest value.

import { svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 150;
const MARGIN = 6;

/** Draw `series`, a list of [class, [{at, value}]]. */
export function chart(series) {
  const times = series.flatMap(([, points]) => points.map((point) => point.at));
  const from = Math.min(...times);
  const span = Math.max(1, Math.max(...times) - from);
  const lines = series.filter(([, points]) => points.length > 1).map(([name, points]) => {
    const highest = Math.max(1, ...points.map((point) => point.value));
    const across = (at) => (at - from) / span * WIDTH;
    const up = (value) => HEIGHT - MARGIN - value / highest * (HEIGHT - 2 * MARGIN);
    const place = ({ at, value }) => `${across(at).toFixed(1)},${up(value).toFixed(1)}`;
    return svg("polyline", { class: name, points: points.map(place).join(" ") });
  });
  const view = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" };
  return svg("svg", { class: "chart", ...view, "aria-hidden": "true" },
    [0, 0.5, 1].map((share) => {
      const y = MARGIN + share * (HEIGHT - 2 * MARGIN);
      return svg("line", { x1: 0, x2: WIDTH, y1: y, y2: y });
    }), lines);
}
