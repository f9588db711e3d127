-- A run's result in one batch and one round trip. core/store/server_aggregation.py fills in the parts.
SET NOCOUNT ON; SET XACT_ABORT ON;
{declarations}
BEGIN TRANSACTION;
{move_cut}
IF @@ROWCOUNT <> 1 THROW 51000, 'the cut moved', 1;
{remove_whole_windows}
{add_to_windows}
{open_windows}
{close_run}
IF @@ROWCOUNT <> 1 THROW 51000, 'the run is closed', 1;
{remove_staged_windows}
{remove_staging}
COMMIT TRANSACTION;
