-- A plan in one batch: the row of the cut is its lock. core/store/server_aggregation.py fills in the parts.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
BEGIN TRANSACTION;
{number_run}
IF @@ROWCOUNT <> 1 THROW 51000, 'another planned first', 1;
{open_run}
COMMIT TRANSACTION;
