// A small chart: a line over time, with its axes in words.

import { el, svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 150;

/** Draw [{at, value}] with axes: `words` writes a value; the line breaks between points that are further apart than
 * `apart`. Null without a point. */
export function chart(name, points, words, apart = Infinity) {
  if (points.length === 0) return null;
  const [from, to] = [points[0].at, points.at(-1).at];
  const top = rounded(Math.max(1, ...points.map((point) => point.value)));
  const place = ({ at, value }) =>
    `${((at - from) / Math.max(1, to - from) * WIDTH).toFixed(1)},${(HEIGHT - value / top * HEIGHT).toFixed(1)}`;
  const lines = pieces(points, apart).map((piece) =>
    svg("polyline", { class: name, points: [...piece, piece.at(-1)].map(place).join(" ") })); // one point is a dot
  const view = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
  return el("figure", { class: "plot", role: "img", "aria-label": `${name}: at most ${words(top)}` },
    el("div", { class: "up" }, [top, top / 2, 0].map((value) => el("span", {}, words(value)))),
    svg("svg", { class: "chart", ...view },
      [0, 0.5, 1].map((share) => svg("line", { x1: 0, x2: WIDTH, y1: share * HEIGHT, y2: share * HEIGHT })), lines),
    el("div", { class: "across" }, [from, (from + to) / 2, to].map((at) => el("span", {}, clock(at)))));
}

const clock = (at) => `${new Date(at).toISOString().slice(11, 16)} UTC`;

/** The next number above that is 1, 2 or 5 times a power of ten. */
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function pieces(points, apart) {
  const found = [];
  for (const point of points) {
    if (found.length && point.at - found.at(-1).at(-1).at <= apart) found.at(-1).push(point);
    else found.push([point]);
  }
  return found;
}
