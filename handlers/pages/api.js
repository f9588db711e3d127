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
  if (response.status === 401 || (response.status === 403 && !body.type)) {
    body.detail = "the app needs a key: enter it with the button Key";
  }
  throw new Problem(response.status, body);
}

/** Ask for the key that Azure's host needs: a key of the function or app to read, the master key to change. */
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
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  done();
}
