"""Idempotency keys in SQL."""

from datetime import timedelta

from core.idempotency import KeptKey, KeyClaim
from core.store.columns import instant_of, instant_text
from core.store.database import Database, write


class Keys:
    """A KeyStore over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_key(self, key: str) -> KeptKey | None:
        found = self._database.ask("read_key", request_key=key)
        if not found:
            return None
        request_hash, claimed_at, expires_at, answer = found[0]
        return KeptKey(request_hash, instant_of(claimed_at), instant_of(expires_at), answer)

    def claim_key(self, claim: KeyClaim) -> bool:
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
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        write(self._database, "idempotency key", "keep_answer", **values, answer=answer)

    def release_key(self, claim: KeyClaim) -> None:
        values = {"request_key": claim.key, "claimed_at": instant_text(claim.claimed_at)}
        abandoned_at = instant_text(claim.abandoned_before - timedelta(seconds=1))
        write(self._database, "idempotency key", "release_key", **values, abandoned_at=abandoned_at)
