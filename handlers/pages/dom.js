// Make elements from text: all that is shown goes through textContent or an attribute, never through markup.

import { guideAt, guideOf } from "./guides.js";

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. Functions in `attributes` listen ("onclick"); null and false are left out. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an element of a drawing. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return node;
}

export const count = (value) => (value === null || value === undefined ? "?" : Number(value).toLocaleString("en"));
export const capital = (word) => word[0].toUpperCase() + word.slice(1);
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** Group the digits of a sequence number: it may have more digits than a number of JavaScript. */
export const grouped = (digits) => (digits === null ? "?" : String(digits).replace(/\B(?=(\d{3})+(?!\d))/g, ","));

/** Name a position; name the numbers of a range. */
export const positionOf = (one) => `${one.partition_id} / ${grouped(one.sequence_number)}`;
export const numbersOf = (one) => `${grouped(one.first)} to ${grouped(one.last)}`;

/** Sort entries by the number of their partition: 2 comes before 10. */
export const inOrder = (entries) => [...entries].sort((one, other) =>
  one.partition_id.length - other.partition_id.length || one.partition_id.localeCompare(other.partition_id));

/** The addresses on this page of a task, of the letters of a cause, and of a position: its letter, and where it went. */
export const taskAt = (task) => `#/tasks/${encodeURIComponent(task.task_id)}`;
export const causeAt = (fingerprint) => `#/letters?fingerprint=${encodeURIComponent(fingerprint)}`;
export const letterAt = (one) => `#/letters/${encodeURIComponent(one.partition_id)}/${one.sequence_number}`;
export const ledgerAt = (one) => `#/ledger/${encodeURIComponent(one.partition_id)}/${one.sequence_number}`;

export function instant(text) {
  if (!text) return "–";
  return el("time", { datetime: text, title: text }, text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
}

/** Show the time of day of an instant, which may have seconds. */
export const clock = (at, isExact = true) => `${new Date(at).toISOString().slice(11, isExact ? 19 : 16)} UTC`;

const UNITS = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** Say how long ago an instant is, or in how long it comes; `now` in milliseconds. */
export function relative(text, now = Date.now()) {
  const seconds = Math.round((now - Date.parse(text)) / 1000);
  const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size) ?? [1, "s"];
  const number = Math.floor(Math.abs(seconds) / size);
  if (number === 0) return "just now";
  return seconds < 0 ? `in ${number} ${unit}` : `${number} ${unit} ago`;
}

/** Show how long ago an instant is, with the instant itself on hover; `keepTime` renews the words. */
export function ago(text) {
  const node = instant(text);
  if (!text) return node;
  node.title = node.textContent;
  node.textContent = relative(text);
  node.className = "ago";
  return node;
}

/** Return the name of a letter's error without its module, and the words for its class. */
export const typeOf = (one) => (one.error_type ?? "").split(".").at(-1);
export const classOf = (one) => CLASSES[one.error_class] ?? one.error_class;
export const CLASSES = { poison: "poison", reference: "reference", refused: "refused", unknown: "bug in the transform", crash: "crash" };

/** Return the message of a letter; it is null for a caller who may not see it. A KeyError says only its key. */
export const messageOf = (one, text = one.error) => (text === null ? "The message is hidden."
  : typeOf(one) === "KeyError" ? `KeyError: ${text}` : text || "There is no message.");

/** Show an instant, and how long ago it is. */
export const dated = (text) => (text ? [instant(text), " (", ago(text), ")"] : instant(text));

/** Renew the words of every relative time on the page. */
export function keepTime() {
  for (const node of document.querySelectorAll("time.ago")) {
    const words = relative(node.dateTime);
    if (node.textContent !== words) node.textContent = words;
  }
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "?";
  if (seconds < 120) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

const TONES = {
  good: ["written", "resolved", "done", "balanced", "healed", "committed", "helped"],
  busy: ["retrying", "planned", "running", "submitting", "submitted"],
  warn: ["waiting", "held", "not_yet", "paused", "written_or_filtered", "erased", "exhausted", "not_tried", "helped_in_part", "did_not_help", "unknown"],
  bad: ["dead_lettered", "missing", "absent", "failed", "open", "not balanced", "rows differ"],
};

const WORDS = { exhausted: "needs you", dead_lettered: "dead-lettered", submitted: "under way" };

/** Return the word for a status. The app does not try an exhausted letter again, so it needs an operator. */
export const wordOf = (status) => WORDS[status] ?? String(status).replaceAll("_", " ");

/** Show a word in its tone; the word alone says the same. More after a comma, such as "done, 2 fail", asks for a look. */
export function badge(word) {
  const tone = String(word).includes(", ") ? "warn" : Object.keys(TONES).find((name) => TONES[name].includes(word)) ?? "";
  return el("span", { class: `badge ${tone}` }, wordOf(word));
}

/** Fill a place again without moving the reader: the focused element keeps the focus, an unfolded one stays unfolded.
 * Elements count as the same when they have the same position and tag name. */
export function renew(place, ...nodes) {
  const held = place.contains(document.activeElement) && place !== document.activeElement
    ? pathTo(place, document.activeElement) : null;
  const unfolded = [...place.querySelectorAll("details[open]")].map((one) => pathTo(place, one));
  place.replaceChildren(...nodes.filter(Boolean));
  for (const path of unfolded) follow(place, path)?.setAttribute("open", "");
  if (held) follow(place, held)?.focus({ preventScroll: true });
}

function pathTo(place, node) {
  const path = [];
  for (let at = node; at !== place; at = at.parentElement) {
    path.unshift([[...at.parentElement.children].indexOf(at), at.tagName]);
  }
  return path;
}

const follow = (place, path) => path.reduce((at, [index, name]) =>
  (at?.children[index]?.tagName === name ? at.children[index] : null), place);

/** Return true on a narrow screen. ops.css uses the same width. */
export const isNarrow = () => matchMedia("(max-width: 760px)").matches;

const NOTHING = [null, "", "0", "0 s", "–", "?"];

/** Make a table. On a narrow screen its rows become cards, which leave out zeros and unknown values, but never the first
 * column. A column is [title, cell of an entry, class]. */
export function table(label, columns, entries) {
  const head = el("tr", {}, columns.map(([title, , kind]) => el("th", { scope: "col", class: kind }, title)));
  const rows = entries.map((entry) => el("tr", {}, columns.map(([title, cell, kind], at) => {
    const shown = cell(entry);
    const look = [kind, at && NOTHING.includes(shown) ? "nothing" : ""].filter(Boolean).join(" ");
    return el("td", { class: look || null, "data-label": title || null }, shown);
  })));
  return el("table", { class: "cards", "aria-label": label }, el("thead", {}, head), el("tbody", {}, rows));
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([term, value]) =>
    [el("dt", {}, term), el("dd", {}, value === null || value === undefined || value === "" ? "–" : value)]));
}

export const card = (title, ...children) => el("section", { class: "card", "aria-label": title }, title ? headed(title) : null, ...children);

/** A form in a card of its own. It is folded, unless a link leads to it. */
export const formCard = (title, summary, isAsked, ...content) => card(title, el("details", { open: isAsked }, el("summary", {}, summary), ...content));

export const needing = (number, word = "letter") => `${plural(number, word)} ${number === 1 ? "needs" : "need"} you`;
export const runbook = (section) => el("a", { class: "guide", href: guideAt("runbook", section), target: "_blank", rel: "noopener" }, `Runbook: ${section}`);

/** Make the heading of a panel, with a link to its guide where there is one. */
function headed(title) {
  const guide = guideOf(title);
  return el("div", { class: "head" }, el("h2", {}, title), guide ? el("a", { class: "guide", href: guide,
    target: "_blank", rel: "noopener", "aria-label": `Guide to ${title}` }, "Guide") : null);
}

export const button = (text, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, text);

/** Make the buttons to the pages before and after one; `turn` shows the page at a cursor, after those of other cursors. */
export const pager = (words, { cursor, before }, next, turn) => el("div", { class: "row" },
  before.length ? button(words[0], () => turn(before.at(-1), before.slice(0, -1))) : null,
  next ? button(words[1], () => turn(next, [...before, cursor])) : null);

/** Say first, in large words, what state things are in; then, in detail, what to do. */
export const matter = (tone, words, detail, when = null) => el("div", { class: `matter ${tone}` }, when ? el("p", { class: "when" }, when) : null, el("p", { class: "words" }, words), el("p", { class: "detail" }, ...detail));

export const field = (label, input) => el("label", {}, label, input);
export const quiet = (...said) => el("p", { class: "quiet" }, ...said);
export const lines = (given) => [given].flat().filter(Boolean).map((line) => (line instanceof Node ? line : el("p", {}, line)));
export const mono = (value) => el("span", { class: "mono" }, typeof value === "boolean" ? String(value) : value ?? "–");

/** Make a form that acts, with itself, when it is sent. */
export const form = (attributes, act, ...children) => el("form", { ...attributes, onsubmit: (event) => { event.preventDefault(); return act(event.target); } }, ...children);

/** Show a form as a dialog, which the heading with this id names; it is gone when it is closed. */
export function dialog(id, content) {
  const shown = el("dialog", { "aria-labelledby": id }, content);
  shown.addEventListener("close", () => shown.remove());
  document.body.append(shown);
  shown.showModal();
  return shown;
}

export function choice(name, values, chosen = "") {
  return el("select", { name }, values.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
}

export const fault = (problem) => el("p", { class: "fault", role: "alert" }, problem.detail ?? String(problem));

/** Show a result or a fault where a screen reader reads it aloud. */
export function notice(text, isFault = false) {
  const node = document.getElementById("notice");
  node.textContent = text;
  node.hidden = !text;
  node.className = isFault ? "fault" : "";
}
