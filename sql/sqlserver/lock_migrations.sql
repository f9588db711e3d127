-- Take the lock, so that processes migrate one after the other: a second one waits here. The lock belongs to the session, so it
-- holds over all transactions of the run and ends with the session. Its name has that of the database: runs in two databases never wait
-- for each other, on a server whose locks are not those of one database either.
SET NOCOUNT ON;
DECLARE @wait int = ?;
DECLARE @taken int, @resource nvarchar(255) = CONCAT(N'hubledger_migration ', DB_NAME());
EXEC @taken = sp_getapplock @Resource = @resource, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = @wait;
IF @taken = -1 THROW 51001, 'a different migration is running', 1;
IF @taken < 0 THROW 51002, 'the lock of the migrations was not given', 1;
