"""Idempotency keys: a request under a key is done once, and answered the same however often it comes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

KEPT_FOR = timedelta(days=1)  # how long a key answers the same
WORK_AT_MOST = timedelta(minutes=10)  # the host ends an invocation before: whoever claimed the key is dead by then

Standing = Literal["free", "answered", "other_request", "in_work"]


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A request that wants to be the one under its key; `request_hash` is of method, route and body."""

    key: str
    request_hash: str
    claimed_at: datetime

    @property
    def expires_at(self) -> datetime:
        """When the key may be used anew."""
        return self.claimed_at + KEPT_FOR

    @property
    def abandoned_before(self) -> datetime:
        """A claim from before this is of a process that died at its work."""
        return self.claimed_at - WORK_AT_MOST


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A key as the store has it; without an answer it is in work, or was when its process died."""

    request_hash: str
    claimed_at: datetime
    expires_at: datetime
    answer: str | None


def standing(claim: KeyClaim, kept: KeptKey | None) -> Standing:
    """What a request under a key has to do with what is kept under it: it may claim the key only if it is free."""
    if kept is None or kept.expires_at <= claim.claimed_at:
        return "free"
    if kept.request_hash != claim.request_hash:
        return "other_request"
    if kept.answer is not None:
        return "answered"
    return "free" if kept.claimed_at < claim.abandoned_before else "in_work"


class KeyStore(Protocol):
    """What a store keeps of keys; every method is one transaction."""

    def read_key(self, key: str) -> KeptKey | None:
        """What is kept under a key."""
        ...

    def claim_key(self, claim: KeyClaim) -> bool:
        """Claim a key that is free by `standing`; False when another request was faster. Forgets what has expired."""
        ...

    def keep_answer(self, claim: KeyClaim, answer: str) -> None:
        """Keep the answer under a key, unless another request has claimed it since."""
        ...

    def release_key(self, claim: KeyClaim) -> None:
        """Let the same request come again at once: nothing came of this one."""
        ...
