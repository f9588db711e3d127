"""Mutants of the order of a key's events, and of the values that AMQP brings."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core"
HELD, REPLAYED = "tests/contract/test_held_letters.py", "tests/contract/test_held_replays.py"
VALUES = "tests/property/test_event_values.py"

MUTANTS = (
    *in_file(
        "core/settle/order.py",
        f"{UNIT}/settle/test_order.py",
        ("all events of a key wait for its first letter", "        self.note(held)\n", ""),
        (
            "events wait for a letter that a person discarded",
            "if key is not None and number not in self._discarded:",
            "if key is not None:",
        ),
    ),
    *in_file(
        "core/settle/settle.py",
        f"{UNIT}/settle/test_order.py",
        ("events after one that fails go on", "                order.note(letters[-1])\n", "                pass\n"),
    ),
    *in_file(
        "core/model/order.py",
        f"{UNIT}/settle/test_order.py",
        (
            "the key of a new letter is forgotten",
            "or new <= self.keys else OpenKeys(self.keys | new)",
            "or new is not None else self",
        ),
    ),
    *in_file(
        "core/ingest/held.py",
        f"{UNIT}/ingest/test_held.py",
        (
            "more letters are held than the limit",
            "    if len(held) <= room:\n",
            "    if len(held) <= 10 * room + 10:\n",
        ),
        (
            "a key whose letters are settled is asked for ever",
            "state.open_keys.minus(asked - found.keys())",
            "state.open_keys.minus(frozenset())",
        ),
        (
            "held letters of earlier batches do not count",
            "policy.held_limit - store.count_held(commit.state)",
            "policy.held_limit",
        ),
    ),
    *in_file(
        "core/store/held.py",
        f"{HELD} {REPLAYED}",
        (
            "a batch leaves an event held after a letter that is settled",
            'return [Step("free_letters", {**_place(commit.state), **freed})] if before else []',
            "return []",
        ),
        (
            "a batch does not see the letter that a replay opened",
            'return [Step("stay_in_order", values, expect=1, otherwise=otherwise)]',
            'return [Step("stay_in_order", values)]',
        ),
    ),
    *in_file(
        "core/store/letters.py",
        HELD,
        (
            "a resolved letter frees nobody",
            '            Step("free_letters", freed),\n            Step("record_attempts"',
            '            Step("record_attempts"',
        ),
        (
            "a discarded letter frees nobody",
            '            Step("free_letters", freed),\n            *recorded,\n',
            "            *recorded,\n",
        ),
        (
            "a freed letter does not say so",
            '            Step("record_freed", {**freed, "done_by": commit.invocation_id}),\n',
            "",
        ),
    ),
    *in_file(
        "core/letters/retry.py",
        HELD,
        ("letters that are freed stay claimed and untried", "            self.freed += freed\n", ""),
        (
            "held letters stay held when the order ends",
            '    if policy.order == "none":\n',
            '    if policy.order == "never":\n',
        ),
    ),
    *in_file(
        "sql/sqlite/queries/held_letter.sql",
        HELD,
        (
            "a letter is freed while an earlier one of its key is open",
            "AND o.sequence_number < h.sequence_number) AS earlier",
            "AND o.sequence_number < -h.sequence_number) AS earlier",
        ),
        (
            "an exhausted letter holds nobody",
            "AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < :before);",
            "AND o.status IN ('waiting', 'retrying', 'held') AND o.sequence_number < :before);",
        ),
        (
            "a retry takes a freed letter from a different claim",
            "AND status = 'waiting' AND due_at = :freed_at AND claimed_by = :freed_by",
            "AND due_at >= :freed_at AND claimed_by <> :claimed_by AND :freed_by <> ''",
        ),
        (
            "all held letters of a key are freed at once when the order ends",
            "          AND o.sequence_number < d.sequence_number);",
            "          AND o.sequence_number < -d.sequence_number);",
        ),
    ),
    *in_file(
        "sql/sqlite/queries/held_letter.sql",
        REPLAYED,
        (
            "a replay puts the letters of a key in a wrong line",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number) AS earlier",
            "(PARTITION BY o.partition_key ORDER BY o.sequence_number DESC) AS earlier",
        ),
    ),
    *in_file(
        "core/model/values.py",
        VALUES,
        (
            "a float that is not finite stops the partition",
            "return float(value) if math.isfinite(value) else",
            "return float(value) if value else",
        ),
        (
            "a large number loses digits",
            "return int(value) if abs(value) <= EXACT else",
            "return float(value) if abs(value) > EXACT else int(value) if value else",
        ),
        ("an object that looks like a tag is read as one", " and not _looks_like_a_tag(value):", ":"),
        ("bytes come back as text", 'return {"$binary": _base64(bytes(value))}', "return _base64(bytes(value))"),
        (
            "a value of any depth is nested as it is",
            "if depth == MOST_NESTED and",
            "if depth == 1_000 * MOST_NESTED and",
        ),
    ),
    *in_file(
        "core/remote/hub/events.py",
        f"{UNIT}/remote/hub/test_events.py",
        (
            "properties that cannot be read are lost",
            "    except NotReadable:\n        return _unread(found)\n",
            "    except NotReadable:\n        return {}\n",
        ),
    ),
)
