// Find homes by the beginning of their ids as a person types it, on the operator's page and on a resident's.

import { BASE, get, Problem } from "./api.js";
import { button, card, el, fault, field, plural, quiet } from "./dom.js";
import { explain } from "./guides.js";

const PAGE = 12;
let asked = 0;
explain("Find a home", "resident", "The resident's page");

/** Show the homes whose ids begin with `prefix`; an answer that arrives after a later request is dropped. */
export async function findHomes(place, prefix, cursor = "", before = []) {
  const own = ++asked;
  try {
    const page = await get("homes", { prefix, cursor, limit: PAGE });
    if (own !== asked) return;
    const homes = [...before, ...page.homes];
    place.replaceChildren(...homes.length ? [quiet(`${page.next ? `The first ${plural(homes.length, "home")} by id, and there are more.` : `${plural(homes.length, "home")}.`} Open one to see its alerts and readings, as its resident sees them.`),
      el("ul", { class: "tiles", "aria-label": "Homes" }, homes.map(link))]
      : prefix ? [quiet("No home id begins with this text.")] : [el("p", {}, "No home is registered yet: a home appears after its first registration event."),
        el("p", {}, el("a", { href: `${BASE}ops` }, "Overview"), " says whether events arrive.")],
    page.next ? button("Show more homes", () => findHomes(place, prefix, page.next, homes)) : "");
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.needsKey) throw problem;
    if (own === asked) place.replaceChildren(fault(problem));
  }
}

const link = (home) => el("li", {}, home.has_page
  ? el("a", { href: `${BASE}homes/${encodeURIComponent(home.home_id)}` }, home.home_id) : home.home_id);

/** Fill the part of the operator's page. */
export async function homes(place) {
  const found = el("div", { "aria-live": "polite" });
  const prefix = el("input", { name: "prefix", type: "search", size: 24, maxlength: 32, autocomplete: "off" });
  const look = () => findHomes(found, prefix.value);
  let later = 0;
  const form = el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); look(); },
    oninput: () => { clearTimeout(later); later = setTimeout(look, 200); } },
  field("Id begins with", prefix), el("button", { class: "main" }, "Find"));
  place.append(el("h1", {}, "Homes"), card("Find a home", form, found));
  await look();
}
