"""A store under watch: no letter is ever held twice, and only its holder settles it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from core.model.letters import ClaimedPosition, FoundLetter, LetterClaim, LetterHold, LetterMove, RetryCommit
from core.replay.pieces import ReplayCommit
from core.store import AppStore

Key = tuple[str, int]


class HeldLetters:
    """Keeps beside the store who holds which letter until when; whatever is not about that goes straight through."""

    def __init__(self, store: AppStore) -> None:
        self._store = store
        self.held: dict[Key, tuple[str, datetime]] = {}

    def as_store(self) -> AppStore:
        return cast(AppStore, self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(self._store, name)

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        got = self._store.claim_letters(claim)
        for each in got:
            key = (each.position.partition_id, each.position.sequence_number)
            _, until = self.held.get(key, ("", claim.claimed_at))
            assert until <= claim.claimed_at, f"{key} is held until {until} and was claimed at {claim.claimed_at}"
            self.held[key] = (claim.claimed_by, claim.claimed_until)
        return got

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        self._store.begin_lone_try(hold, began_at, until)
        for key in _keys(hold.partition.partition_id, hold.sequence_numbers):
            if key in self.held and self.held[key][0] == hold.claimed_by:
                self.held[key] = (hold.claimed_by, until)

    def commit_retry(self, commit: RetryCommit) -> int:
        number = self._store.commit_retry(commit)
        for key in _keys(commit.partition.partition_id, commit.sequence_numbers):
            holder, _ = self.held.pop(key, ("nobody", None))
            assert holder == commit.claimed_by, f"{key} was settled by {commit.claimed_by} and held by {holder}"
        return number

    def commit_replay(self, commit: ReplayCommit) -> int:
        """A replay takes letters from whoever holds them."""
        number = self._store.commit_replay(commit)  # type: ignore[attr-defined]
        for key in _keys(commit.partition.partition_id, commit.numbers):
            self.held.pop(key, None)
        return cast(int, number)

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        before = {one.sequence_number: one for one in self._find(move)}
        found = self._store.move_letters(move)
        for each in found:
            key = (move.partition.partition_id, each.sequence_number)
            if each != before[each.sequence_number] and each.touched_by == move.move_id:
                self.held.pop(key, None)
        return found

    def _find(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        state = replace(self._store.read_partition(move.partition), partition=move.partition)
        return self._store.find_letters(LetterHold(state, move.sequence_numbers, ""))


def _keys(partition_id: str, numbers: tuple[int, ...]) -> list[Key]:
    return [(partition_id, number) for number in numbers]
