-- A new job under the locks of its partitions. core/store/server_replays.py fills in the parts, in this order:
-- declarations, the locks, the search for another job in the way, the job and its progress.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
DECLARE @standing varchar(36);
BEGIN TRANSACTION;
{locks}
{overlap}
IF @standing IS NULL
BEGIN
{job}
{progress}
END;
COMMIT TRANSACTION;
SELECT @standing AS standing;
