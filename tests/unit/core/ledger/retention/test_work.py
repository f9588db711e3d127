"""core/ledger/retention/work.py: the size of a piece; tests/contract/operator/test_purges.py works on whole jobs."""

from core.ledger.retention.work import LETTERS, PIECE

TABLE_LOCK = 5_000  # locks that one statement holds in one index, at which SQL Server locks the table
LOCKS_OF_ROW = 2  # its key and its page, or the old and the new key of a changed index


def test_no_statement_of_a_piece_reaches_the_locks_at_which_the_server_locks_the_table() -> None:
    assert max(PIECE, LETTERS) * LOCKS_OF_ROW < TABLE_LOCK
