"""A database under watch: no letter is ever held twice, and only its holder settles it."""

import json
from dataclasses import replace
from typing import Any

from core.store.database import Database
from core.store.script import Named, Outcome, Script, Step

Key = tuple[str, int]


class HeldLetters:
    """Keeps beside the database who holds which letter until when; other statements go straight through."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.held: dict[Key, tuple[str, str]] = {}

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        first = script.steps[0]
        moves = next((step for step in script.steps if step.statement == "move_letters"), None)
        before = self._found(moves) if moves else {}
        done = self._database.run(script, rehearse)
        if first.statement == "claim_letters":
            self._note_claim(first, done)
        elif first.statement == "begin_chunk":
            self._note_begun(first, done)
        elif first.statement == "begin_lone_try":
            self._note_lone_try(first)
        elif first.statement == "count_commit":
            self._note_retry(next(step for step in script.steps if step.statement == "settle_letters"))
        elif first.statement == "take_freed_letters":
            self._note_taken(first, done)
        elif moves:
            self._note_move(moves, before, done)
        elif first.statement == "count_replay" and not rehearse:  # a replay takes letters from whoever holds them
            for key in _keys(next(step for step in script.steps if step.statement == "record_attempts")):
                self.held.pop(key, None)
            self._note_order(first)
        return done

    def close(self) -> None:
        self._database.close()

    def _note_claim(self, step: Step, done: Outcome) -> None:
        at, until = step.values["claimed_at"], step.values["claimed_until"]
        for partition_id, number, _ in done.rows:
            _, held_until = self.held.get((partition_id, number), ("", at))
            assert held_until <= at, f"{partition_id}/{number} is held until {held_until} and was claimed at {at}"
            self.held[partition_id, number] = (step.values["claimed_by"], until)

    def _note_begun(self, step: Step, done: Outcome) -> None:
        for number, *_ in done.rows:
            holder, until = self.held[step.values["partition_id"], number]
            assert holder in (step.values["claimed_by"], step.values["run"]), f"{number} was begun twice"
            self.held[step.values["partition_id"], number] = (step.values["run"], until)

    def _note_order(self, step: Step) -> None:
        """A replay holds letters after the one that it opened, and takes them from whoever claimed them."""
        place = step.values["partition_id"]
        numbers = [number for at, number in self.held if at == place]
        moved = replace(step, values={**step.values, "sequence_numbers": json.dumps([[number] for number in numbers])})
        for number, status, _ in self._found(moved).values():
            if status != "retrying":
                self.held.pop((place, number))

    def _note_taken(self, step: Step, done: Outcome) -> None:
        for number, *_ in done.rows:
            key = (step.values["partition_id"], number)
            assert key not in self.held, f"{key} is held, and was freed and taken"
            self.held[key] = (step.values["claimed_by"], step.values["claimed_until"])

    def _note_lone_try(self, step: Step) -> None:
        for key in _keys(step):
            if key in self.held and self.held[key][0] == step.values["claimed_by"]:
                self.held[key] = (step.values["claimed_by"], step.values["claimed_until"])

    def _note_retry(self, step: Step) -> None:
        claimed_by = step.values["claimed_by"]
        for each in step.many or ():
            key = (step.values["partition_id"], each["sequence_number"])
            holder, _ = self.held.pop(key, ("nobody", ""))
            assert holder == claimed_by, f"{key} was settled by {claimed_by} and held by {holder}"

    def _note_move(self, step: Step, before: dict[int, tuple[Any, ...]], done: Outcome) -> None:
        for letter in done.rows:
            number, _, touched_by = letter
            if letter != before[number] and touched_by == step.values["move_id"]:
                self.held.pop((step.values["partition_id"], number), None)

    def _found(self, step: Step) -> dict[int, tuple[Any, ...]]:
        names = ("stream_id", "partition_id", "sequence_numbers")
        found = self._database.ask("find_letters", **{name: step.values[name] for name in names})
        return {letter[0]: letter for letter in found}


def _keys(step: Step) -> list[Key]:
    return [(step.values["partition_id"], number) for (number,) in json.loads(step.values["sequence_numbers"])]
