// The JSON twin of this page. Keys stay in this tab; a request that changes anything is sent under its own key.

import { button, el, field } from "./dom.js";

const KEY = "hubledger.key";
export const BASE = new URL("../", import.meta.url).pathname; // ".../api/"

/** A problem of the API (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `the app answers ${status}`);
    Object.assign(this, body, { status, detail: this.message });
  }

  /** Whether the host of the app, and not the app itself, refused the request: without a key, or with a wrong one. */
  get needsKey() {
    return this.status === 401 || (this.status === 403 && !this.type);
  }
}

export async function get(path, parameters = {}) {
  const asked = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  return answered(await send(`${path}${asked.size ? `?${asked}` : ""}`, {}));
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
  const problem = new Problem(response.status, body);
  if (problem.needsKey) problem.detail = "the app needs a key for this: enter it with the button Key";
  throw problem;
}

/** Ask for the key that Azure's host needs. */
export function askForKey(done) {
  const dialog = el("dialog", { "aria-labelledby": "key-title" },
    el("form", { method: "dialog", onsubmit: (event) => keep(event.target.key.value, done) },
      el("h2", { id: "key-title" }, "Key of the function app"), aboutKeys(), field("Key", keyInput()),
      el("div", { class: "row" }, useKey(), button("Cancel", () => dialog.close()))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Fill `place` with one card that takes the key, instead of a part that the app shows to no one without it. */
export function lock(place, done) {
  const refused = sessionStorage.getItem(KEY) !== null;
  const use = (event) => {
    event.preventDefault();
    document.body.classList.remove("locked");
    keep(event.target.key.value, done);
  };
  document.body.classList.toggle("locked", !refused); // a key may open other parts: their links stay
  place.replaceChildren(el("section", { class: "card lone", "aria-labelledby": "key-title" },
    el("form", { onsubmit: use },
      el("h1", { id: "key-title" }, "This page needs a key"), aboutKeys(),
      refused ? el("p", { class: "fault", role: "alert" }, "The app refused the key of this tab.") : null,
      field("Key", keyInput()), el("div", { class: "row" }, useKey()))));
  place.querySelector("input").focus();
}

const keyInput = () => el("input", { type: "password", name: "key", autocomplete: "off", maxlength: 200 });
const useKey = () => el("button", { class: "main" }, "Use this key");
const aboutKeys = () => el("p", { class: "quiet" },
  "Enter a key of the function app. This tab stores it until you close the tab. The local host needs none.");

function keep(value, done) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  done();
}
