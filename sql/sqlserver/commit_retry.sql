-- A retry in one batch and one round trip. core/store/server_letters.py fills in the parts, in this order: declarations,
-- the partition's row, the rows of each class, what became of the letters, then their attempts and the ledger.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
DECLARE @commit_number bigint;
BEGIN TRANSACTION;
{partition}
IF @@ROWCOUNT <> 1 THROW 51002, 'the partition has no commits', 1;
SELECT @commit_number = c.commit_number
  FROM hubledger.event_hub_checkpoint AS c
 WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id;
{rows}
{letters}
IF @@ROWCOUNT <> @letter_count THROW 51002, 'letters were taken from the claim', 1;
{attempts}
{ledger}
COMMIT TRANSACTION;
SELECT @commit_number AS commit_number;
