// The JSON twin of this page, and the dialogs that it needs: a confirmation and a key. Keys stay in this tab.

import { button, clock, count, dialog, el, fault, field, form, lines, notice, quiet, renew } from "./dom.js";

const KEY = "hubledger.key";
const [SELDOM_MS, SILENT_MS, LONGEST_READ_MS] = [10_000, 10_000, 60_000];
// These routes hide what quotes an event; their twins below revealed/ show it, to those who may.
const TWINNED = /^(dead-letters(\/.*)?|ledger\/[^/]+\/[^/]+)$/;
const HIDDEN = "Messages are hidden: this key or account may read, but not reveal. No error, property, row or body is shown.";
const SILENT = "the app does not answer";
let hides = false; // the twins have refused this key
export const BASE = new URL("../", import.meta.url).pathname; // ".../api/"

/** A problem of the API (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the app answers ${status}`);
    Object.assign(this, body, { status, detail: this.message });
  }

  /** True if the host of the app, and not the app itself, refused the request: without a key, or with a wrong one. */
  get needsKey() {
    return (this.status === 401 || this.status === 403) && !this.type;
  }
}

/** Act, and show in a place the problem that the app answers with; true without one. What needs a key is thrown. */
export async function tried(place, act) {
  try {
    await act();
    return true;
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.needsKey) throw problem;
    renew(place, fault(problem));
    return false;
  }
}

/** Act again and again on a page that is seen, until it is left or an act returns true. Without an answer a line below the
 * heading says since when, once for each problem, and the figures of the page fade until the next answer. */
export async function repeat(left, everyMs, act) {
  const main = document.getElementById("main");
  let [since, said] = [null, ""];
  const silent = (problem, at) => {
    if (left.aborted || said === String(problem)) return;
    [since, said] = [since ?? at, String(problem)];
    main.classList.add("stale");
    document.getElementById("stale")?.remove();
    main.querySelector("h1").after(el("div", { class: "matter bad", id: "stale", role: "alert" },
      el("p", { class: "words" }, problem.status === 0 ? `No answer from the app since ${clock(since)}` : `No new figures since ${clock(since)}`),
      el("p", { class: "detail" }, problem.status === 0 ? "What you see below is older than that." : problem.detail ?? String(problem))));
  };
  left.addEventListener("abort", () => main.classList.remove("stale"));
  while (!left.aborted) {
    const asked = new Date();
    const late = document.hidden ? 0 : setTimeout(silent, SILENT_MS, new Problem(0, { detail: SILENT }), asked);
    try {
      if (!document.hidden) {
        const isOver = await act();
        [since, said] = [null, ""];
        if (left.aborted) return;
        main.classList.remove("stale");
        document.getElementById("stale")?.remove();
        if (isOver === true) return;
      }
    } catch (problem) {
      if (problem.needsKey || problem.isFinal) throw problem;
      silent(problem, asked);
    } finally {
      clearTimeout(late);
    }
    await new Promise((resolve) => { setTimeout(resolve, everyMs); });
  }
}

/** Return a reader that asks at most once in 10 s; `ask` gets what was found before. */
export function seldom(ask, found) {
  let askedAt = -Infinity;
  return async () => {
    if (performance.now() - askedAt >= SELDOM_MS) {
      askedAt = performance.now();
      found = await ask(found);
    }
    return found;
  };
}

/** Read; where a twin reveals more, ask it first, and fall back to the route that hides. */
export async function get(path, parameters = {}, headers = {}) {
  const asked = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  const from = `${path}${asked.size ? `?${asked}` : ""}`;
  const ofKey = path === "ledger" && asked.has("key");
  if (!ofKey && !TWINNED.test(path)) return answered(await send(from, { headers }));
  const ofValue = asked.get("fingerprint")?.includes(".");
  const onlyRevealed = ofKey || ofValue || asked.has("body") || asked.has("partition_key");
  if (!hides || onlyRevealed) {
    try {
      return await answered(await send(`revealed/${from}`, { headers }));
    } catch (problem) {
      if (onlyRevealed) throw unrevealed(problem);
      if (!isRefusal(problem)) throw problem;
    }
  }
  const hidden = await answered(await send(from, { headers }));
  hides = true;
  if (document.getElementById("notice").hidden) notice(HIDDEN);
  return hidden;
}

/** Return true if the host or the app refused the key or the account of this tab. */
export const isRefusal = (problem) => [401, 403].includes(problem.status);

/** The host refuses a key that opens other routes as it refuses a wrong one: the page stays, and says which right is missing. */
const unrevealed = (problem) => (problem.needsKey && sessionStorage.getItem(KEY) !== null
  ? new Problem(problem.status, { type: "about:blank", detail: "the key of this tab does not open what reveals events" })
  : problem);

/** Change something. A route says by its state, or by an id of the request, what a second request does. */
export const post = (path, body) => change("POST", path, body);

/** Open a task of a kind. The same request again, under the same id, opens no second one. */
export const open = (kind, body, id = crypto.randomUUID()) => change("PUT", `tasks/${id}`, { kind, ...body });

const change = async (method, path, body) => answered(await send(path,
  { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));

async function send(path, options) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { "x-functions-key": key } : {}) };
  try {
    const signal = options.method ? null : AbortSignal.timeout(LONGEST_READ_MS); // a change is never given up
    return await fetch(BASE + path, { ...options, headers, signal, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Problem(0, { detail: SILENT });
  }
}

async function answered(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  const problem = new Problem(response.status, body);
  if (problem.needsKey) problem.detail = "the app needs a key for this: enter it with the button Access key";
  throw problem;
}

/**
 * Ask, then act. `act(expected, reason)` sends the request and returns a notice; when the number of things has changed
 * (`count-differs`), the dialog asks again with the new number. The person types the number, unless it is null or
 * `isTyped` is false, and a reason, unless `asksWhy` is false. `more` are further fields, which may stay empty. `title`,
 * `text` (a string, or a list of lines) and `word` may depend on the number.
 */
export function confirm({ title, text, word, number, act, grave = false, asksWhy = true, isTyped = true, more = [] }) {
  return new Promise((resolve) => {
    const asked = { number };
    const [heading, asking, left] = [el("h2", { id: "confirm-title" }), el("span", {}), el("p", { class: "quiet", id: "left" })];
    const [said, trouble] = [el("div", {}), el("div", {})];
    const saidOf = (given) => (typeof given === "function" ? given(asked.number) : given);
    const typed = el("input", { name: "count", inputmode: "numeric", autocomplete: "off", required: true });
    const reason = el("input", { name: "reason", required: true, minlength: 3, maxlength: 400, autocomplete: "off" });
    const go = el("button", { class: grave ? "grave" : "main", disabled: true });
    const tell = () => {
      heading.textContent = saidOf(title);
      said.replaceChildren(...lines(saidOf(text)));
      go.textContent = saidOf(word);
      asking.textContent = `Type ${count(asked.number)} to confirm.`;
      check();
    };
    const check = () => {
      const same = asked.number === null || !isTyped || typed.value.replaceAll(/[ ,.]/g, "") === String(asked.number);
      const missing = [same ? "" : `type ${count(asked.number)}`, !asksWhy || reason.value.trim().length >= 3 ? "" : "give a reason"].filter(Boolean);
      [go.disabled, left.textContent] = [missing.length > 0, missing.length ? `To go on, ${missing.join(" and ")}.` : ""];
    };
    const send = async () => {
      go.disabled = true;
      try {
        notice(await act(asked.number, reason.value.trim()));
        shown.close("done");
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        if (problem.type?.endsWith(":count-differs")) {
          asked.number = problem.count;
          typed.value = "";
          typed.focus();
        }
        trouble.replaceChildren(fault(problem));
        tell();
      }
    };
    tell();
    const shown = dialog("confirm-title", form({ oninput: check }, send, heading, said, number === null || !isTyped ? null : el("label", {}, asking, typed),
      asksWhy ? field("Why? (required) Others read it in the history.", reason) : null, ...more, trouble,
      el("div", { class: "row" }, go, button("Cancel", () => shown.close())), left));
    shown.addEventListener("close", () => resolve(shown.returnValue === "done"));
  });
}

/** Ask for the key of operators, which Azure's host needs; never for the master key. */
export function askForKey(done) {
  const use = (key) => { shown.close(); keep(key, done); };
  const shown = dialog("key-title", keyForm(el("h2", { id: "key-title" }, "Key of the function app"), use, null,
    button("Cancel", () => shown.close())));
}

/** Fill `place` with one card that takes the key, in place of a part that needs a key. */
export function lock(place, done) {
  const refused = sessionStorage.getItem(KEY) !== null;
  const use = (key) => { document.body.classList.remove("locked"); keep(key, done); };
  document.body.classList.toggle("locked", !refused); // a key may open other parts: their links stay
  place.replaceChildren(el("section", { class: "card lone", "aria-labelledby": "key-title" },
    keyForm(el("h1", { id: "key-title" }, "This page needs a key"), use,
      refused ? fault("The app refused the key of this tab.") : null)));
  place.querySelector("input").focus();
}

const keyForm = (title, use, trouble, more = null) => form({}, (given) => use(given.key.value), title,
  quiet("Enter a key of the function app. This tab stores it until you close the tab. The local host needs none."), trouble,
  field("Key", el("input", { type: "password", name: "key", autocomplete: "off", maxlength: 200 })),
  el("div", { class: "row" }, el("button", { class: "main" }, "Use this key"), more));

function keep(value, done) {
  hides = false;
  notice("");
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  done();
}
