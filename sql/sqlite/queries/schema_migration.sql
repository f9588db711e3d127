-- name: create_schema_migration
-- Create the list of migrations that this database has.
-- params:
CREATE TABLE IF NOT EXISTS schema_migration (
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    CONSTRAINT pk_schema_migration PRIMARY KEY (version)
) STRICT;

-- name: read_schema_version
-- Read the newest migration of this database, or NULL.
-- params:
SELECT MAX(version) FROM schema_migration;

-- name: read_newer_migrations
-- Read the migrations of this database after a version, in order.
-- params: version
SELECT m.version, m.name FROM schema_migration AS m WHERE m.version > :version ORDER BY m.version;

-- name: record_migration
-- Record a migration that was applied.
-- params: version, name, applied_at
INSERT INTO schema_migration (version, name, applied_at) VALUES (:version, :name, :applied_at);
