"""Idempotency keys: a request with a key is carried out once, and every repetition gets the same answer."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal

from core.store.columns import instant_text
from core.store.database import Database, write
from core.store.decoding import decoder

KEPT_FOR = timedelta(days=1)  # the time for which an answer is stored
WORK_AT_MOST = timedelta(minutes=10)  # the host ends invocations earlier: the process of an older claim is dead

KeyStatus = Literal["free", "answered", "other_request", "in_work"]


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A request that claims a key of its caller; `request_hash` covers the operation, the path and the body."""

    key: str
    request_hash: str
    claimed_at: datetime

    @property
    def expires_at(self) -> datetime:
        """The time from which the key may be used again."""
        return self.claimed_at + KEPT_FOR

    @property
    def abandoned_before(self) -> datetime:
        """The time before which a claim without an answer counts as abandoned: its process died."""
        return self.claimed_at - WORK_AT_MOST


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A key in the store; without an answer, its request is still running, or its process died."""

    request_hash: str
    claimed_at: datetime
    expires_at: datetime
    answer: str | None


def key_of_caller(caller: str, key: str) -> str:
    """Return the text under which a caller's key is stored; callers with the same key have different texts."""
    return sha256(f"{caller}\n{key}".encode()).hexdigest()


def standing(claim: KeyClaim, kept: KeptKey | None) -> KeyStatus:
    """Return the status of a key for a request; the request may claim it only if it is free."""
    if kept is None or kept.expires_at <= claim.claimed_at:
        return "free"
    if kept.request_hash != claim.request_hash:
        return "other_request"
    if kept.answer is not None:
        return "answered"
    return "free" if kept.claimed_at < claim.abandoned_before else "in_work"


class Keys:
    """The keys in a database; every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_key(self, key: str) -> KeptKey | None:
        """Return the stored key, or None."""
        found = self._database.ask("read_key", request_key=key)
        return decoder(KeptKey)(found[0]) if found else None

    def claim_key(self, claim: KeyClaim) -> bool:
        """Claim a key that `standing` calls free; False when another request was first. Deletes expired keys."""
        values = {
            "request_key": claim.key,
            "request_hash": claim.request_hash,
            "claimed_at": instant_text(claim.claimed_at),
            "expires_at": instant_text(claim.expires_at),
        }
        if write(
            self._database,
            "idempotency key",
            "claim_free_key",
            **values,
            abandoned_at=instant_text(claim.abandoned_before),
        ):
            return True
        write(self._database, "idempotency key", "forget_keys", claimed_at=values["claimed_at"])
        return bool(write(self._database, "idempotency key", "claim_new_key", **values))

    def keep_answer(self, claim: KeyClaim, answer: str) -> None:
        """Store the answer under a key, unless another request has claimed the key since."""
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        write(self._database, "idempotency key", "keep_answer", **values, answer=answer)

    def release_key(self, claim: KeyClaim) -> None:
        """Free the key of a request that was not carried out, so that the request may come again at once."""
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        abandoned_at = instant_text(claim.abandoned_before - timedelta(seconds=1))
        write(self._database, "idempotency key", "release_key", **values, abandoned_at=abandoned_at)
