-- A step of a job that writes nothing but its own rows. core/store/server_replays.py fills in the parts, in this order:
-- declarations, the progress, its guard, what a dry run keeps, the job, and what ends it.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
BEGIN TRANSACTION;
{progress}
{guard}
{writes}
{job}
IF @@ROWCOUNT <> 1 THROW 51008, 'the replay does not run', 1;
{end}
COMMIT TRANSACTION;
