// The JSON twin of this page. Keys stay in this tab; a request that changes anything is sent under its own key.

import { button, el, field, notice } from "./dom.js";

const KEY = "hubledger.key";
// These routes hide what quotes an event; their twins below revealed/ show it, to those who may.
const TWINNED = /^(dead-letters(\/.*)?|ledger\/[^/]+\/[^/]+)$/;
const HIDDEN = "Messages are hidden: this key or account may read, but not reveal. No error, property, row or body is shown.";
let hides = false; // the twins have refused this key
export const BASE = new URL("../", import.meta.url).pathname; // ".../api/"

/** A problem of the API (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the app answers ${status}`);
    Object.assign(this, body, { status, detail: this.message });
  }
}

/** Read; where a twin reveals more, ask it first, and fall back to the route that hides. */
export async function get(path, parameters = {}, headers = {}) {
  const asked = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  const from = `${path}${asked.size ? `?${asked}` : ""}`;
  if (!TWINNED.test(path)) return answered(await send(from, { headers }));
  const onlyRevealed = asked.has("body") || asked.has("partition_key");
  if (!hides || onlyRevealed) {
    try {
      return await answered(await send(`revealed/${from}`, { headers }));
    } catch (problem) {
      if (onlyRevealed || ![401, 403].includes(problem.status)) throw problem;
    }
  }
  const hidden = await answered(await send(from, { headers }));
  hides = true;
  if (document.getElementById("notice").hidden) notice(HIDDEN);
  return hidden;
}

/** POST once: a second request under the same `key` changes nothing more. */
export async function post(path, body, key = crypto.randomUUID()) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  return answered(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function send(path, options) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { "x-functions-key": key } : {}) };
  try {
    return await fetch(BASE + path, { ...options, headers, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Problem(0, { detail: "the app does not answer" });
  }
}

async function answered(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  if (response.status === 401 || (response.status === 403 && !body.type)) {
    body.detail = "the app needs a key: enter it with the button Key";
  }
  throw new Problem(response.status, body);
}

/** Ask for the key of operators, which Azure's host needs; never for the master key. */
export function askForKey(done) {
  const input = el("input", { type: "password", name: "key", autocomplete: "off", maxlength: 200 });
  const dialog = el("dialog", { "aria-labelledby": "key-title" },
    el("form", { method: "dialog", onsubmit: () => keep(input.value, done) },
      el("h2", { id: "key-title" }, "Key of the function app"),
      el("p", { class: "quiet" }, "This tab stores it until you close the tab. The local host needs none."),
      field("Key", input),
      el("div", { class: "row" },
        el("button", { class: "main" }, "Use this key"),
        button("Cancel", () => dialog.close()))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function keep(value, done) {
  hides = false;
  notice("");
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  done();
}
