// Erasures: name subjects, see in a dry run what there is of them, then forget them for good.

import { open, tried } from "./api.js";
import { confirm } from "./confirm.js";
import { button, card, count, el, field, grouped, inOrder, plural, table, taskAt } from "./dom.js";

const NONE = { task: null, names: "", reason: "" };
let counted = NONE; // the last dry run: the form is filled with it when the operator comes back

/** The form of an erasure. A dry run comes first; then the same subjects can be erased, after one more question. */
export function erasuresCard() {
  const names = el("textarea", { name: "subjects", rows: 3, cols: 40, required: true, autocomplete: "off", spellcheck: "false" });
  const reason = el("input", { name: "reason", size: 40, required: true, minlength: 3, maxlength: 400, autocomplete: "off" });
  const trouble = el("div", {});
  const subjects = () => [...new Set(names.value.split("\n").map((one) => one.trim()).filter(Boolean))];
  const begin = async (dryRun, why) => {
    const task = await open("erasure", { subjects: subjects(), reason: why, dry_run: dryRun });
    counted = dryRun ? { task: task.task_id, names: names.value, reason: reason.value } : NONE;
    location.hash = taskAt(task);
  };
  const count_ = async (event) => {
    event.preventDefault();
    await tried(trouble, () => begin(true, reason.value.trim()));
  };
  const forGood = () => confirm({ title: "Forget them for good", word: "Erase", number: subjects().length, grave: true,
    text: (number) => `Rows, letters and windows of ${plural(number, "subject")} are erased, and no replay brings them back.`,
    act: async (_, why) => { await begin(false, why); return "The erasure has begun."; } });
  const erase = button("Erase", forGood, { id: "erasure-erase", class: "grave" });
  const check = () => { erase.disabled = counted === NONE || names.value !== counted.names; };
  [names.value, reason.value] = [counted.names, counted.reason];
  names.addEventListener("input", check);
  check();
  return card("Forget a person", el("p", { class: "quiet" },
    "A subject is a partition key, or a value of the column that your app names as its subject. Count first, which changes nothing. Then erase what was counted."),
  el("form", { class: "row", onsubmit: count_ }, field("Subjects, one a line", names),
    field("Why? It is stored, so name nobody.", reason), el("button", { class: "main", id: "erasure-count" }, "Count"), erase), trouble);
}

export const erasure = {
  stays: "what it has erased stays erased",
  title: (found) => (found.dry_run ? "Dry run: nothing is erased" : `Erasure of ${plural(found.subjects, "subject")}`),
  done: (found) => `${plural(found.rows, "row")} and ${plural(found.letters, "letter")} ${found.dry_run ? "found" : "erased"}`,
  facts: (found) => [[["Subjects", count(found.subjects)], ["Parts done", `${count(found.done)} of ${count(found.total)}`]],
  [["Staged events", count(found.staged)], ["Rows that replays had removed", count(found.retracted)],
    ["Events in dry runs", count(found.diffs)]]],
  notes: (found) => (found.notes.length ? el("ul", { class: "quiet" }, found.notes.map((one) => el("li", {}, one))) : null),
  actions: (found) => (found.status === "done" && found.task_id === counted.task ? el("a", { href: "#/tasks" }, "Erase what was counted") : null),
  more: (found) => {
    const tables = Object.entries(found.tables);
    return [tables.length ? card("By table", table("Tables of the erasure", [
      ["Table", ([name]) => el("span", { class: "mono" }, name)],
      ["Rows", ([, rows]) => count(rows), "amount"]], tables)) : null,
    card("Partitions", table("Partitions of the erasure", [["Partition", (one) => one.partition_id],
      ["Next number", (one) => grouped(one.next), "amount"], ["Up to", (one) => grouped(one.last), "amount"]], inOrder(found.partitions)))];
  },
};
