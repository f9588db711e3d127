// The page of docs/ that explains a panel: the app serves these pages as text, because a deployed app has no other address.

const AT = new URL("./", import.meta.url).pathname; // ".../api/ops/"
const [OVERVIEW, LETTERS, LEDGER] = ["## The overview", "## From a poison event to a replay", "## Where a number went"];
const OPERATOR = {
  [OVERVIEW]: ["Ledger", "Over time", "Partitions"],
  "## A partition is stopped": ["Stopped partitions"],
  "## The audit": ["Audit", "Audit of the ledger", "Faults"],
  [LETTERS]: ["Dead letters", "By cause", "One by one", "Why", "Event", "Body", "Attempts", "New replay", "Tasks",
    "Dry run", "Replay", "What would change", "By partition", "Moves of the task"],
  "## Many letters at once": ["Redrives", "Letters that it moved"],
  "## Old rows": ["Purges", "Purge", "By table"],
  [LEDGER]: ["Find a number", "Outcome", "Commit", "Letter", "Gap", "Rows", "Changes by retries and replays"],
};
const FOUND = new Map([
  ...Object.entries(OPERATOR).flatMap(([heading, titles]) => titles.map((title) => [title, ["operator.md", heading]])),
  ["How far the sums reach", ["operator.md", "## The aggregation"]],
  ["Runs", ["operator.md", "## The aggregation"]],
  ["Run", ["aggregation.md", "## When something is wrong"]],
]);

/** Name the page of docs/, and its heading, that explains a panel of a room. */
export function explain(title, file, heading) {
  FOUND.set(title, [file, heading]);
}

/** Return the address of the guide to a panel, at its heading; null for a panel without one. */
export function guideOf(title) {
  const found = FOUND.get(title.replace(/ [\d,]+$/, ""));
  return found ? `${AT}${found[0]}#:~:text=${encodeURIComponent(found[1]).replaceAll("-", "%2D")}` : null;
}
