-- name: create_schema_migration
-- Create the list of migrations that this database has.
-- params:
CREATE TABLE IF NOT EXISTS schema_migration (
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    app        TEXT NOT NULL,
    text_hash  TEXT NOT NULL,
    CONSTRAINT pk_schema_migration PRIMARY KEY (app, version)
) STRICT;
-- sqlserver:
IF OBJECT_ID(N'hubledger.schema_migration', N'U') IS NULL
    CREATE TABLE hubledger.schema_migration (
        version    int NOT NULL,
        name       nvarchar(100) NOT NULL,
        applied_at datetime2(6) NOT NULL,
        app        nvarchar(200) COLLATE Latin1_General_100_BIN2 NOT NULL,
        text_hash  varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
        CONSTRAINT pk_schema_migration PRIMARY KEY (app, version)
    );

-- name: read_migrations
-- Read the migrations of this database.
-- params:
SELECT m.app, m.version, m.name, m.text_hash FROM schema_migration AS m ORDER BY m.app, m.version;

-- name: record_migration
-- Record a migration that was applied.
-- params: version int, name nvarchar(4000), applied_at datetime2(6), app nvarchar(4000), text_hash varchar(8000)
INSERT INTO schema_migration (version, name, applied_at, app, text_hash)
VALUES (:version, :name, :applied_at, :app, :text_hash);
