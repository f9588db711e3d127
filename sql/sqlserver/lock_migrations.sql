-- Take the lock, so that processes migrate one after the other. It belongs to the transaction that begins here;
-- commit_migrations.sql ends both.
SET NOCOUNT ON; SET XACT_ABORT ON;
BEGIN TRANSACTION;
DECLARE @taken int;
EXEC @taken = sp_getapplock @Resource = N'hubledger_migration', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
IF @taken < 0 THROW 51001, 'another migration is running and did not end within a minute', 1;
