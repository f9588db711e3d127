"""Idempotency keys, from named statements of either engine."""

from datetime import timedelta

from core.idempotency import KeptKey, KeyClaim
from core.store import NamedQueries
from core.store.records import instant_of, instant_text


class Keys:
    """A KeyStore over an engine."""

    def __init__(self, engine: NamedQueries) -> None:
        self._engine = engine

    def read_key(self, key: str) -> KeptKey | None:
        """See KeyStore."""
        found = self._engine.ask("read_key", request_key=key)
        if not found:
            return None
        request_hash, claimed_at, expires_at, answer = found[0]
        return KeptKey(request_hash, instant_of(claimed_at), instant_of(expires_at), answer)

    def claim_key(self, claim: KeyClaim) -> bool:
        """See KeyStore."""
        values = {
            "request_key": claim.key,
            "request_hash": claim.request_hash,
            "claimed_at": instant_text(claim.claimed_at),
            "expires_at": instant_text(claim.expires_at),
        }
        if self._engine.tell("claim_free_key", **values, abandoned_at=instant_text(claim.abandoned_before)):
            return True
        self._engine.tell("forget_keys", claimed_at=values["claimed_at"])
        return bool(self._engine.tell("claim_new_key", **values))

    def keep_answer(self, claim: KeyClaim, answer: str) -> None:
        """See KeyStore."""
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        self._engine.tell("keep_answer", **values, answer=answer)

    def release_key(self, claim: KeyClaim) -> None:
        """See KeyStore."""
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        abandoned_at = instant_text(claim.abandoned_before - timedelta(seconds=1))
        self._engine.tell("release_key", **values, abandoned_at=abandoned_at)
