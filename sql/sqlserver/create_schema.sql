-- Create the schema that holds all our tables.
SET NOCOUNT ON;
IF SCHEMA_ID(N'hubledger') IS NULL EXEC(N'CREATE SCHEMA hubledger');
