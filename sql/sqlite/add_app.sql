-- The list of migrations gets the column app, which is part of its key. SQLite changes a key only by a new table.
ALTER TABLE schema_migration RENAME TO schema_migration_without_app;

CREATE TABLE schema_migration (
    version    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    app        TEXT NOT NULL CONSTRAINT df_schema_migration_app DEFAULT 'hubledger',
    CONSTRAINT pk_schema_migration PRIMARY KEY (app, version)
) STRICT;

INSERT INTO schema_migration (version, name, applied_at)
SELECT m.version, m.name, m.applied_at FROM schema_migration_without_app AS m;

DROP TABLE schema_migration_without_app;
