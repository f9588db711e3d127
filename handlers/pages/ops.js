// The page: it shows the part that the address names after its #, and holds the parts' common controls.

import { askForKey, get, lock } from "./api.js";
import { el, fault, keepTime, notice } from "./dom.js";
import { ledger } from "./ledger.js";
import { letter, letters } from "./letters.js";
import { nameStream, overview } from "./overview.js";
import { runs } from "./runs.js";
import { task, tasks } from "./tasks.js";
import { themeButton } from "./theme.js";

const PLACES = [
  [/^#?\/?$/, overview, "overview"],
  [/^#\/letters(?:\?(.*))?$/, letters, "letters"],
  [/^#\/letters\/([^/?]+)\/([^/?]+)$/, letter, "letters"],
  [/^#\/tasks(?:\?(.*))?$/, tasks, "tasks"],
  [/^#\/tasks\/([^/?]+)$/, task, "tasks"],
  [/^#\/runs(?:\/([^/?]+))?$/, runs, "runs"],
  [/^#\/ledger$/, ledger, "ledger"],
  [/^#\/ledger\/([^/?]+)\/([^/?]+)$/, ledger, "ledger"],
];

/** A page of the app's room. The status names its module; the function of the same name in it draws the page. */
const ROOM = /^#\/([a-z][a-z-]*)$/;

/** Say that an address leads to no page. */
function unknown(place) {
  place.append(el("h1", {}, "There is no such page"), el("section", { class: "card" }, "The address names no page of this app. ",
    el("a", { href: "#/" }, "Overview")));
}

/** Show a page of the room. */
const ofRoom = (name) => async (place, left) => {
  const status = await get("status");
  nameStream(status);
  mark(name);
  const page = status.room_pages.find((one) => one.name === name);
  if (!page) return unknown(place);
  const module = await import(`./${page.file}`);
  return module[name](place, left);
};

const CLOCK_MS = 10_000;
const main = document.getElementById("main");
let leave = () => {};

/** Show the part that the address names. A part gets a place to fill, and a signal that aborts when it is left. */
async function show(moveFocus = true) {
  leave();
  const left = new AbortController();
  leave = () => left.abort();
  const hash = location.hash === "#main" ? "" : location.hash;
  const name = ROOM.exec(hash)?.[1];
  const [found, part, page] = PLACES.map(([form, ...rest]) => [form.exec(hash), ...rest]).find(([match]) => match)
    ?? (name ? [[""], ofRoom(name), name] : [[""], unknown, ""]);
  mark(page);
  const place = document.createElement("div");
  place.className = "place";
  main.replaceChildren(place);
  if (moveFocus) main.focus({ preventScroll: true });
  if (part !== overview) nameOnce();
  try {
    await part(place, left.signal, ...found.slice(1).map((text) => decodeURIComponent(text ?? "")));
  } catch (problem) {
    if (problem.needsKey) refuse();
    else if (!left.signal.aborted) {
      if (!place.querySelector("h1")) place.append(el("h1", {}, problem.status === 404 ? "Not found" : "Not shown"));
      place.append(fault(problem));
    }
  }
}

/** Mark the link of the shown page. */
function mark(page) {
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Name the stream in the header, unless it is named; the overview does this itself, and a part shows faults. */
async function nameOnce() {
  if (document.getElementById("stream").textContent) return;
  await get("status").then(nameStream, () => {});
}

/** Show the card that takes a key, and nothing else: a part that was left requests nothing more. */
function refuse() {
  leave();
  notice("");
  lock(main, () => show());
}

/** Name the tab by the heading of what it shows. */
new MutationObserver(() => {
  const heading = main.querySelector("h1");
  document.title = heading ? `${heading.textContent.trim()} · Hubledger` : "Hubledger";
}).observe(main, { childList: true, subtree: true, characterData: true });

themeButton(document.getElementById("theme"));
document.getElementById("key").addEventListener("click", () => askForKey(() => show()));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("unhandledrejection", (event) => {
  if (!event.reason?.needsKey) return;
  event.preventDefault();
  refuse();
});
setInterval(keepTime, CLOCK_MS);
window.addEventListener("hashchange", () => { notice(""); show(); });
show(false);
