-- All of a migration stands, and the list names it.
SET NOCOUNT ON;
COMMIT TRANSACTION;
