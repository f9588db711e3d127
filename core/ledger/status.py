"""The old name of PartitionLedger, for `core.store` and `local`; its home is `core.ledger.books`."""

from collections.abc import Sequence

from core.ledger.books import PartitionLedger as PartitionLedger


def balanced(ledgers: Sequence[PartitionLedger]) -> bool:
    """Return True when all ledgers are balanced."""
    return all(ledger.balanced for ledger in ledgers)
