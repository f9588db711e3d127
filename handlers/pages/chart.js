// A small chart: lines over time, each scaled to its own highest value.

import { svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 150;
const MARGIN = 6;

/** Draw `series`, a list of [class, [{at, value}]]; a line breaks between points that are further apart than `apart`. */
export function chart(series, apart = Infinity) {
  const times = series.flatMap(([, points]) => points.map((point) => point.at));
  const from = Math.min(...times);
  const span = Math.max(1, Math.max(...times) - from);
  const lines = series.flatMap(([name, points]) => {
    const highest = Math.max(1, ...points.map((point) => point.value));
    const across = (at) => (at - from) / span * WIDTH;
    const up = (value) => HEIGHT - MARGIN - value / highest * (HEIGHT - 2 * MARGIN);
    const place = ({ at, value }) => `${across(at).toFixed(1)},${up(value).toFixed(1)}`;
    return pieces(points, apart).map((piece) =>
      svg("polyline", { class: name, points: [...piece, piece.at(-1)].map(place).join(" ") })); // one point is a dot
  });
  const view = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" };
  return svg("svg", { class: "chart", ...view, "aria-hidden": "true" },
    [0, 0.5, 1].map((share) => {
      const y = MARGIN + share * (HEIGHT - 2 * MARGIN);
      return svg("line", { x1: 0, x2: WIDTH, y1: y, y2: y });
    }), lines);
}

function pieces(points, apart) {
  const found = [];
  for (const point of points) {
    if (found.length && point.at - found.at(-1).at(-1).at <= apart) found.at(-1).push(point);
    else found.push([point]);
  }
  return found;
}
