-- A piece of a replay in one batch and one round trip. core/store/server_replays.py fills in the parts, in this order:
-- declarations, the partition's row, what is taken away and the rows of each class, the letters, their attempts, the
-- ledger, the staged events, then the job's progress, the states it carries along, and the job.
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
{staged}
{progress}
IF @@ROWCOUNT <> 1 THROW 51008, 'the replay moved on', 1;
{states}
{job}
IF @@ROWCOUNT <> 1 THROW 51008, 'the replay does not run', 1;
COMMIT TRANSACTION;
SELECT @commit_number AS commit_number;
