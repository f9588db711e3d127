-- name: create_schema_migration
-- Create the list of migrations that this database has.
-- params:
IF OBJECT_ID(N'hubledger.schema_migration', N'U') IS NULL
    CREATE TABLE hubledger.schema_migration (
        version    int NOT NULL,
        name       nvarchar(100) NOT NULL,
        applied_at datetime2(7) NOT NULL,
        CONSTRAINT pk_schema_migration PRIMARY KEY (version)
    );

-- name: read_schema_version
-- Read the newest migration of this database, or NULL.
-- params:
SELECT MAX(m.version) FROM hubledger.schema_migration AS m;

-- name: read_newer_migrations
-- Read the migrations of this database after a version, in order.
-- params: version int
SELECT m.version, m.name FROM hubledger.schema_migration AS m WHERE m.version > @version ORDER BY m.version;

-- name: record_migration
-- Record a migration that was applied.
-- params: version int, name nvarchar(4000), applied_at datetime2(7)
INSERT INTO hubledger.schema_migration (version, name, applied_at) VALUES (@version, @name, @applied_at);
