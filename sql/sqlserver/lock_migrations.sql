-- One migration at a time: whoever comes second waits here until the first has committed. The lock belongs to the
-- transaction that this opens; commit_migrations.sql ends both.
SET NOCOUNT ON; SET XACT_ABORT ON;
BEGIN TRANSACTION;
DECLARE @taken int;
EXEC @taken = sp_getapplock @Resource = N'hubledger_migration', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @taken < 0 THROW 51001, 'another migration is running and did not end within a minute', 1;
