-- All of a migration stands, and the lock is given back.
SET NOCOUNT ON;
COMMIT TRANSACTION;
