-- The same as commit_replay.sql without the job's own rows, rolled back. It answers with the rows that were taken away,
-- and in a row without a table with how many letters were added and resolved.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
DECLARE @commit_number bigint, @rows_retracted bigint = 0, @letters_resolved bigint = 0, @letters_added bigint = 0;
BEGIN TRANSACTION;
{partition}
IF @@ROWCOUNT <> 1 THROW 51008, 'the checkpoint is before the events', 1;
SELECT @commit_number = c.commit_number
  FROM hubledger.event_hub_checkpoint AS c
 WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id;
{rows}
{letters}
{attempts}
{ledger}
SELECT r.table_name, r.sequence_number, r.ordinal, r.row
  FROM hubledger.retracted_row AS r
 WHERE r.stream_id = @stream_id AND r.partition_id = @partition_id AND r.commit_number = @commit_number
UNION ALL
SELECT '', @letters_added, @letters_resolved, N'';
ROLLBACK TRANSACTION;
