-- The first batch of each session of the app. Without values, because an option that a batch with values sets ends with
-- that batch. A wait for a lock ends before the deadline of its statement does: error 1222 leaves no outcome unknown.
SET NOCOUNT ON;
SET LOCK_TIMEOUT 10000;
SELECT d.name, d.compatibility_level, CONVERT(int, d.is_read_committed_snapshot_on) AS has_row_versions
  FROM sys.databases AS d
 WHERE d.name = DB_NAME();
