-- The schema that holds everything of ours.
IF SCHEMA_ID(N'hubledger') IS NULL EXEC(N'CREATE SCHEMA hubledger');
