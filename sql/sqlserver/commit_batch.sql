-- The whole commit in one batch and one round trip. core/store/server_commit.py fills in the parts, in this order:
-- declarations, the checkpoint's compare and set, the rows of each class, the letters, the ledger, the gaps.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
DECLARE @commit_number bigint;
BEGIN TRANSACTION;
{checkpoint}
IF @@ROWCOUNT <> 1 THROW 51000, 'the checkpoint moved', 1;
SELECT @commit_number = c.commit_number
  FROM hubledger.event_hub_checkpoint AS c
 WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id;
{writes}
COMMIT TRANSACTION;
SELECT @commit_number AS commit_number;
