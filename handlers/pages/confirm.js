// Ask for confirmation before a change: the person types the number of things that it changes, and the reason.

import { Problem } from "./api.js";
import { button, count, el, fault, field, notice } from "./dom.js";

/**
 * Ask, then act. `act(expected, reason)` sends the request and returns a notice; when the number of things has changed
 * (`count-differs`), the dialog asks again with the new number. Without a number (null) it asks only for the reason; where
 * `asksWhy` is false, it does not ask for the reason. `more` are further fields, which may stay empty.
 */
export function confirm({ title, text, word, number, act, grave = false, asksWhy = true, more = [] }) {
  return new Promise((resolve) => {
    const asked = { number };
    const said = el("p", {});
    const asking = el("span", {});
    const typed = el("input", { name: "count", inputmode: "numeric", autocomplete: "off", required: true });
    const reason = el("input", { name: "reason", required: true, minlength: 3, maxlength: 400, autocomplete: "off" });
    const go = el("button", { class: grave ? "grave" : "main", disabled: true }, word);
    const trouble = el("div", {});
    const tell = () => {
      said.textContent = text(asked.number);
      asking.textContent = `Type ${count(asked.number)} to confirm.`;
      check();
    };
    const check = () => {
      const same = asked.number === null || typed.value.replaceAll(/[ ,.]/g, "") === String(asked.number);
      go.disabled = !(same && (!asksWhy || reason.value.trim().length >= 3));
    };
    const form = el("form", { method: "dialog", oninput: check },
      el("h2", { id: "confirm-title" }, title), said,
      number === null ? null : el("label", {}, asking, typed), ...more,
      asksWhy ? field("Why? It is stored with your name.", reason) : null, trouble,
      el("div", { class: "row" }, go, button("Cancel", () => dialog.close())));
    const dialog = el("dialog", { "aria-labelledby": "confirm-title" }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        notice(await act(asked.number, reason.value.trim()));
        dialog.close("done");
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
    });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "done"); });
    document.body.append(dialog);
    tell();
    dialog.showModal();
  });
}
