// The resident's page: the last day and week of a home by kind of sensor, and its alerts.

import { askForKey, get, lock, Problem } from "./api.js";
import { activityChart, ALARMING_PPM } from "./activity.js";
import { badge, button, card, count, duration, el, fault, plural, renew, table } from "./dom.js";
import { findHomes } from "./homes.js";
import { themeButton } from "./theme.js";
import { clock } from "./zone.js";

const EVERY_MS = 60_000;
const FIRST_ALERTS = 5;
const [HOUR_MS, DAY_S] = [3_600_000, 86_400];
// By kind of sensor: its name, the word for an active reading, and the name of its alert.
const WORDS = { motion: ["Motion", "Motion", "Motion"], door: ["Doors", "Open", "Door open"],
  window: ["Windows", "Open", "Window open"], glass_break: ["Glass break", "Heard", "Glass break"] };
const wordsOf = (kind) => {
  const plain = kind[0].toUpperCase() + kind.slice(1).replaceAll("_", " ");
  return WORDS[kind] ?? [plain, "Active", plain];
};

const main = document.getElementById("main");
const id = decodeURIComponent(location.pathname.split("/").at(-1));
const view = { span: "day", until: "", every: false };
const LOCKED = -1;
let asked = 0; // the number of the last request

/** The link of a resident, after the # of the address: browsers send that part to no server. */
const link = () => new URLSearchParams(location.hash.slice(1)).get("link");

/** A resident with a link sees one home: no search, no key, and no way to the operator's page. */
function ownOnly() {
  for (const name of ["back", "search", "key"]) document.getElementById(name).hidden = link() !== null;
}

/** Read and show; an answer that arrives after a later request is dropped. */
async function show() {
  const own = ++asked;
  try {
    const place = `homes/${encodeURIComponent(id)}`;
    const home = await (link() ? get(`${place}/own-activity`, { until: view.until }, { "X-Home-Link": link() })
      : get(`${place}/activity`, { until: view.until }));
    if (own === asked) renew(main, ...parts(home));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (own !== asked) return;
    if (problem.needsKey) refuse();
    else if (problem.status === 404) renew(main, el("h1", {}, "Home not found"), fault({ detail: `No home is registered as ${id}. Check the link, or ask who sent it.` }));
    else renew(main, el("h1", {}, `Home ${id}`), fault(problem));
  }
}

/** Show the card that takes a key, and request nothing until there is one. */
function refuse() {
  asked = LOCKED;
  lock(main, () => { asked = 0; show(); });
}

function parts(home) {
  const at = clock(home.time_zone);
  const period = home[view.span];
  const isSilent = silentFor(home) !== null;
  const top = [
    el("div", { class: "row actions" }, el("h1", {}, `Home ${home.home_id}`),
      badge(`alarm system: ${isSilent || isEmpty(home) ? "unknown" : home.armed ? "armed" : "not armed"}`)),
    view.until || isEmpty(home) ? null : safety(home, at),
    alerts(home, at),
  ];
  if (isEmpty(home)) return top;
  return [
    ...top,
    el("div", { class: "row actions" },
      el("span", { class: "row", role: "group", "aria-label": "Length of the period" },
        choose("day", isSilent ? "Newest day" : "Last day"), choose("week", isSilent ? "Newest week" : "Last week")),
      el("span", { class: "row", role: "group", "aria-label": "Time of the period" },
        button("← Earlier", () => go(period.since), { "data-go": "earlier" }),
        view.until ? button("Latest", () => go(""), { "data-go": "latest" }) : null)),
    el("p", { class: "quiet", id: "period" }, `${at.dated(period.since)} to ${at.dated(period.until)}, `,
      `${at.zone}. `, asOf(home, at)),
    period.kinds.length ? el("div", { class: isSilent ? "columns old" : "columns" }, period.kinds.map((one) => kind(one, home, period, at)))
      : home.readings.length ? unsummed(home, at) : card("", el("p", { id: "nothing" }, nothing(home))),
  ];
}

/** Return true for a home without an alert, a reading or a sum. */
const isEmpty = (home) => !home.alerts.length && !home.readings.length && !home.newest_at && !view.until
  && !home.day.kinds.length && !home.week.kinds.length;

function nothing(home) {
  if (home.alerts.length) return "No reading besides these alerts is in the charts of this period yet.";
  return "No sensor sent a reading in this period.";
}

/** Show the newest readings in the order of their arrival, while the home has no sums. */
function unsummed(home, at) {
  const columns = [
    ["Time", (one) => el("time", { datetime: one.observed_at }, at.dated(one.observed_at))],
    ["Sensor", (one) => [wordsOf(one.kind)[0], el("span", { class: "quiet" }, ` ${one.sensor_id}`)]],
    ["Reading", (one) => (one.ppm === null ? one.state ?? "–" : `${count(one.ppm)} ppm`)],
  ];
  return card("Newest readings", el("p", { id: "unsummed" }, home.as_of.committed_at
    ? "The readings of this home are not in the charts yet. These are the newest ones, as they came."
    : "There are no charts yet. These are the newest readings, as they came."),
  table("Newest readings", columns, home.readings));
}

const choose = (span, text) => button(text, () => { view.span = span; show(); },
  { "aria-pressed": String(view.span === span), "data-span": span });

function go(until) {
  // The end of a period is not part of it: request the period that ends there by an instant just before.
  view.until = until && new Date(Date.parse(until) - 1).toISOString();
  show();
}

function asOf(home, at) {
  if (silentFor(home) !== null) return null;
  if (!home.as_of.committed_at) return el("span", { id: "as-of" }, "There are no charts yet.");
  const age = (Date.parse(home.at) - Date.parse(home.as_of.committed_at)) / 1000;
  return el("span", { id: "as-of" }, "As of ", el("time", { datetime: home.as_of.committed_at },
    at.moment(home.as_of.committed_at)), ` (${duration(Math.max(0, age))} ago)`,
  home.as_of.is_current || !home.newest_at ? "." : "; newer readings follow.");
}

/** Return the time of the newest event: of one in the sums or an alert, else of a reading that is not summed yet. */
const newestAt = (home) => home.newest_at ?? home.readings[0]?.observed_at ?? null;

/** Return for how many seconds no sensor has reported, if that is a day or longer; null for an earlier period. */
function silentFor(home) {
  if (view.until || !newestAt(home)) return null;
  const age = (Date.parse(home.at) - Date.parse(newestAt(home))) / 1000;
  return age < DAY_S ? null : age;
}

const RELY = "Do not rely on this page as an alarm: readings reach it with a delay of some seconds or minutes.";
const DANGER = "Do you feel dizzy or sick, have a headache, or does an alarm sound? Go outside at once, and call the emergency number. Otherwise open "
  + "the windows, and do not use stove, heater or chimney until they are checked.";
const matter = (tone, words, id, ...more) => el("section", { class: `matter ${tone}`, id, "aria-label": "Now" }, el("p", { class: "words" }, words), more.map((one) => el("p", { class: "detail" }, one)));

/** Say first if the home is safe as far as the newest readings tell, and what to do. */
function safety(home, at) {
  const age = silentFor(home);
  if (age !== null) return matter("bad", "Nobody knows now if this home is safe.", "silent", ["No sensor has reported since ",
    el("time", { datetime: newestAt(home) }, at.dated(newestAt(home))), `, ${age < 2 * DAY_S ? duration(age) : plural(Math.floor(age / DAY_S), "day")} ago. What follows is old.`],
  "Check that the sensors have power and a connection. If that does not help, call the company that looks after them.");
  const ageOf = (time) => duration((Date.parse(home.at) - Date.parse(time)) / 1000);
  const recent = home.alerts.filter((one) => one.observed_at >= home.day.since);
  const gas = recent.filter((one) => one.ppm !== null).sort((one, other) => other.ppm - one.ppm)[0];
  const now = home.day.kinds.find((one) => one.ppm);
  const most = now?.steps.at(-1).ppm.most;
  const newest = now ? `Newest reading of carbon monoxide: ${count(most)} ppm, ${at.moment(now.last_observed_at)}. From ${ALARMING_PPM} ppm on it is dangerous. ` : "";
  if (gas && most >= ALARMING_PPM) return matter("bad", `Carbon monoxide is dangerous now: ${count(most)} ppm.`, "safety", newest, DANGER);
  if (gas) return matter("bad", now ? `Carbon monoxide is below the dangerous level again: ${count(most)} ppm, ${ageOf(now.last_observed_at)} ago.` : "Carbon monoxide was dangerous.", "safety", [`It was highest, ${count(gas.ppm)} ppm, ${ageOf(gas.observed_at)} ago, on ${at.moment(gas.observed_at)}. ${newest}`], DANGER);
  if (recent.length) return matter("bad", `${plural(recent.length, "alert")} in the last day.`, "safety", `The newest: ${wordsOf(recent[0].kind)[2].toLowerCase()}, ${at.moment(recent[0].observed_at)}. `
    + "If nobody of the home caused it, do not go in alone: call the police.");
  return matter("good", `No alert in the last ${home.alerts.length ? "day" : "week"}.`, "safety", [newest || `The newest reading is of ${at.moment(newestAt(home))}. `, "There is nothing to do."], RELY);
}

/** Group alerts of one kind and sensor that follow each other within an hour; the newest comes first. */
const incidents = (alerts) => alerts.reduce((found, one) => {
  const last = found.at(-1)?.at(-1);
  const isSame = last?.kind === one.kind && last.sensor_id === one.sensor_id && Date.parse(last.observed_at) - Date.parse(one.observed_at) <= HOUR_MS;
  if (isSame) found.at(-1).push(one);
  else found.push([one]);
  return found;
}, []);

function incident(group, at) {
  const [{ kind, ppm, sensor_id: sensor, observed_at: until }, first, isOne] = [group[0], group.at(-1), group.length === 1];
  const most = Math.max(...group.map((one) => one.ppm));
  return el("li", {}, el("b", {}, wordsOf(kind)[2]), ppm === null ? "" : ` ${isOne ? "" : "up to "}${count(most)} ppm, dangerous`,
    el("span", { class: "quiet" }, ` sensor ${sensor} · `, el("time", { datetime: first.observed_at }, at.dated(first.observed_at)),
      isOne ? "" : [" to ", el("time", { datetime: until }, at.day(Date.parse(first.observed_at)) === at.day(Date.parse(until)) ? at.hour(Date.parse(until)) : at.moment(until)), `, ${count(group.length)} alerts`]));
}

function alerts(home, at) {
  const all = incidents(home.alerts);
  const shown = view.every ? all : all.slice(0, FIRST_ALERTS);
  const hidden = all.length - shown.length;
  if (isEmpty(home)) return matter("warn", "No sensor of this home has sent a reading yet, so nobody knows if it is safe.", "calm",
    "If sensors are installed, check their power and connection, or call the company that looks after them. Alerts and charts appear here with the first reading.");
  const isSilent = silentFor(home) !== null;
  if (!shown.length) return view.until || isSilent ? card("Alerts", el("p", { class: "calm", id: "calm" }, "No alerts in the week.")) : null;
  return card(isSilent ? "Old alerts, of the last week with readings" : "Alerts of the week", el("ul", { class: isSilent ? "alerts old" : "alerts", id: "alerts" }, shown.map((one) => incident(one, at))),
    hidden ? button(`Show ${count(hidden)} more`, () => { view.every = true; show(); }) : null,
    isSilent ? null : el("p", { class: "quiet" }, RELY),
    home.more_alerts && !hidden ? el("p", { class: "quiet" }, "The week has older alerts, which are not shown.") : null);
}

function kind(one, home, period, at) {
  const [name, active] = wordsOf(one.kind);
  const said = one.ppm ? `Highest ${one.ppm.most} ppm, average ${one.ppm.mean.toFixed(1)}`
    : one.active ? `${active} in ${count(one.active)} of ${plural(one.readings, "reading")}`
      : `All quiet in ${plural(one.readings, "reading")}`;
  const rows = one.steps.map((step) => el("tr", {}, el("th", { scope: "row" }, at.moment(step.at)),
    el("td", {}, step.ppm ? `${step.ppm.least} to ${step.ppm.most} ppm, ${step.ppm.mean} on average`
      : `${count(step.active)} of ${plural(step.readings, "reading")}`)));
  return card(name, el("p", { class: "said" }, said),
    activityChart(one, home.alerts.filter((each) => each.kind === one.kind), period, at, `${name}: ${said}`),
    el("ul", { class: "legend" }, [...(one.ppm ? [["active", "average, in ppm"], ["range", "least to most"]]
      : [["active", active.toLowerCase()], ["readings", "number of all readings"]]), ...(home.alerts.some((each) => each.kind === one.kind) ? [["alarm", "alert"]] : [])].map(([look, words]) => el("li", {}, el("i", { class: look }), words))),
    el("p", { class: "quiet" }, `Last reading ${(silentFor(home) === null ? at.moment : at.dated)(one.last_observed_at)}${stateOf(one, active.toLowerCase())}`),
    el("details", {}, el("summary", {}, "In numbers"), el("table", {}, el("tbody", {}, rows))));
}

/** Say of a switch what its last reading was, where the readings of its last step agree. */
const stateOf = ({ ppm, steps }, active) => (ppm || ![0, steps.at(-1).readings].includes(steps.at(-1).active) ? "" : `: ${steps.at(-1).active ? "" : "not "}${active}`);

function search(form) {
  const found = document.getElementById("found");
  const look = () => (form.prefix.value ? findHomes(found, form.prefix.value) : found.replaceChildren());
  let later = 0;
  form.addEventListener("input", () => { clearTimeout(later); later = setTimeout(look, 200); });
  form.addEventListener("submit", (event) => { event.preventDefault(); look(); });
}

document.title = `Home ${id}`;
themeButton(document.getElementById("theme"));
document.getElementById("key").addEventListener("click", () => askForKey(show));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
search(document.getElementById("search"));
window.addEventListener("hashchange", () => { ownOnly(); show(); });
ownOnly();
window.addEventListener("unhandledrejection", (event) => {
  if (!event.reason?.needsKey) return;
  event.preventDefault();
  refuse();
});
setInterval(() => { if (!document.hidden && !view.until && asked !== LOCKED) show(); }, EVERY_MS);
show();
