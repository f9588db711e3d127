-- The schema that holds everything of ours.
SET NOCOUNT ON;
IF SCHEMA_ID(N'hubledger') IS NULL EXEC(N'CREATE SCHEMA hubledger');
