"""The number of rows that one statement changes at most, so that SQL Server locks rows and never the whole table."""

# SQL Server exchanges 5,000 locks of one statement in one index for a lock of the table. A row takes two: one on its
# key and one on its page, or two on a key that changes.
ROWS_AT_ONCE = 2_000
