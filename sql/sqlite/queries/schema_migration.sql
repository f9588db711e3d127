-- name: create_schema_migration
-- Create the list of migrations that this database has.
-- params:
CREATE TABLE IF NOT EXISTS schema_migration (
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    app        TEXT NOT NULL,
    CONSTRAINT pk_schema_migration PRIMARY KEY (app, version)
) STRICT;

-- name: read_migrations
-- Read the migrations of this database.
-- params:
SELECT m.app, m.version, m.name FROM schema_migration AS m ORDER BY m.app, m.version;

-- name: record_migration
-- Record a migration that was applied.
-- params: version, name, applied_at, app
INSERT INTO schema_migration (version, name, applied_at, app) VALUES (:version, :name, :applied_at, :app);
