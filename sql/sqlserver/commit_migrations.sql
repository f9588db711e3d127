-- Commit a whole migration, and release the lock.
SET NOCOUNT ON;
COMMIT TRANSACTION;
