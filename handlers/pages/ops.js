// The page: which part is shown, by the part of the address behind #, and what all parts share.

import { askForKey } from "./api.js";
import { fault, notice } from "./dom.js";
import { ledger } from "./ledger.js";
import { letter, letters } from "./letters.js";
import { overview } from "./overview.js";
import { replay, replays } from "./replays.js";

const THEME = "hubledger.theme";
const PLACES = [
  [/^#?\/?$/, overview, "overview"],
  [/^#\/letters(?:\?(.*))?$/, letters, "letters"],
  [/^#\/letters\/([^/?]+)\/([^/?]+)$/, letter, "letters"],
  [/^#\/replays(?:\?(.*))?$/, replays, "replays"],
  [/^#\/replays\/([^/?]+)$/, replay, "replays"],
  [/^#\/ledger$/, ledger, "ledger"],
  [/^#\/ledger\/([^/?]+)\/([^/?]+)$/, ledger, "ledger"],
];

const main = document.getElementById("main");
let leave = () => {};

/** Show the part that the address names. A part gets a place to fill and a signal that ends when it is left. */
async function show(moveFocus = true) {
  leave();
  const left = new AbortController();
  leave = () => left.abort();
  const hash = location.hash === "#main" ? "" : location.hash;
  const [found, part, page] = PLACES.map(([form, ...rest]) => [form.exec(hash), ...rest]).find(([match]) => match)
    ?? [["", ""], overview, "overview"];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = document.createElement("div");
  place.className = "place";
  main.replaceChildren(place);
  if (moveFocus) main.focus({ preventScroll: true });
  try {
    await part(place, left.signal, ...found.slice(1).map((text) => decodeURIComponent(text ?? "")));
  } catch (problem) {
    if (!left.signal.aborted) place.append(fault(problem));
  }
}

function changeTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem(THEME, document.documentElement.dataset.theme);
}

if (localStorage.getItem(THEME)) document.documentElement.dataset.theme = localStorage.getItem(THEME);
document.getElementById("theme").addEventListener("click", changeTheme);
document.getElementById("key").addEventListener("click", () => askForKey(() => show()));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", () => { notice(""); show(); });
show(false);
