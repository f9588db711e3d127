-- The list of migrations gets the column app, which is part of its key. The key binds the new column, so EXEC makes it.
SET NOCOUNT ON; SET XACT_ABORT ON;
BEGIN TRANSACTION;
ALTER TABLE hubledger.schema_migration ADD app nvarchar(200) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_schema_migration_app DEFAULT N'hubledger';
ALTER TABLE hubledger.schema_migration DROP CONSTRAINT pk_schema_migration;
EXEC(N'ALTER TABLE hubledger.schema_migration ADD CONSTRAINT pk_schema_migration PRIMARY KEY (app, version);');
COMMIT TRANSACTION;
