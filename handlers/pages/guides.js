// The guide that explains a panel: a page of docs/, which the app serves.

const AT = new URL("./", import.meta.url).pathname; // ".../api/ops/"
const [OVERVIEW, LETTERS, LEDGER] = ["The overview", "From a poison event to a replay", "Where a number went"];
const OPERATOR = {
  [OVERVIEW]: ["Ledger", "Lag", "Rate", "Partitions"],
  "The audit": ["Audit", "Audit of the ledger", "Faults"],
  [LETTERS]: ["Dead letters", "By cause", "One by one", "Why", "Event", "Body", "History", "Discard it", "By value of the message", "New replay", "Newest tasks",
    "Dry run", "Replay", "Result", "What would change", "By partition", "What happened"],
  "Many letters at once": ["Retries and discards so far", "Retry", "Discard"], "Old rows": ["Old rows", "Purge", "Dry run: nothing is deleted", "What is old enough", "What was deleted"],
  [LEDGER]: ["Find a number", "Find a time", "Find a key", "Outcome", "Step by step", "Rows"],
};
const FOUND = new Map([
  ...Object.entries(OPERATOR).flatMap(([heading, titles]) => titles.map((title) => [title, ["operator", heading]])),
  ["Are the sums up to date?", ["operator", "The aggregation"]],
  ["Runs", ["operator", "The aggregation"]], ["Run", ["aggregation", "When something is wrong"]],
  ...["Forget a person", "Letters that mention them", "Letters that were erased", "Where the app looked", "Dry run: nothing is erased", "Erasure", "Erased for good"].map((title) => [title, ["erasure", "How to erase"]]),
]);

/** Name the guide, and its heading, that explains a panel of a room. */
export function explain(title, name, heading) {
  FOUND.set(title, [name, heading]);
}

/** Return the address of a guide at a heading, which has an anchor as GitHub makes it. */
export const guideAt = (name, heading) => `${AT}${name}.html#${heading.toLowerCase()
  .replace(/[^\p{L}\p{N}_ -]/gu, "").trim().replaceAll(" ", "-")}`;

/** Return the address of the guide to a panel, at its heading; null for a panel without one. */
export function guideOf(title) {
  const found = FOUND.get(title.replace(/ [\d,]+$/, ""));
  return found ? guideAt(...found) : null;
}
