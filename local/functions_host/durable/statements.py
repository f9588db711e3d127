"""The SQL of the Durable state. Instants are ISO texts of one width in UTC, so that they compare as texts."""

TABLES = """
CREATE TABLE IF NOT EXISTS durable_instance (
    instance_id TEXT NOT NULL PRIMARY KEY, execution_id TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, input TEXT, output TEXT, custom_status TEXT,
    parent_instance_id TEXT, parent_execution_id TEXT, parent_task_id INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_history (
    instance_id TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (instance_id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_inbox (
    entry_number INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, execution_id TEXT,
    due_at TEXT NOT NULL, is_control INTEGER NOT NULL, event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS durable_inbox_due ON durable_inbox (due_at);
CREATE INDEX IF NOT EXISTS durable_inbox_instance ON durable_inbox (instance_id, due_at);
CREATE TABLE IF NOT EXISTS durable_activity (
    activity_number INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, execution_id TEXT NOT NULL,
    task_id INTEGER NOT NULL, name TEXT NOT NULL, input TEXT,
    UNIQUE (instance_id, execution_id, task_id)
);
CREATE TABLE IF NOT EXISTS durable_entity (
    entity_id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL
) WITHOUT ROWID;
"""

# A suspended instance is due only for its control events.
READ_READY = """
SELECT inbox.instance_id FROM durable_inbox AS inbox
LEFT JOIN durable_instance AS instance ON instance.instance_id = inbox.instance_id
WHERE inbox.due_at <= :now AND (inbox.is_control = 1 OR instance.status IS NOT 'Suspended')
GROUP BY inbox.instance_id ORDER BY MIN(inbox.due_at) LIMIT :top
"""
READ_NEXT_DUE = "SELECT MIN(due_at) FROM durable_inbox WHERE due_at > ?"
READ_ENTRIES = """
SELECT entry_number, execution_id, event FROM durable_inbox
WHERE instance_id = ? AND due_at <= ? ORDER BY due_at, entry_number LIMIT ?
"""
ADD_ENTRY = "INSERT INTO durable_inbox (instance_id, execution_id, due_at, is_control, event) VALUES (?, ?, ?, ?, ?)"
REMOVE_ENTRY = "DELETE FROM durable_inbox WHERE entry_number = ?"
REMOVE_ENTRIES = "DELETE FROM durable_inbox WHERE instance_id = ?"
REMOVE_ENTRIES_OF_EXECUTION = "DELETE FROM durable_inbox WHERE instance_id = ? AND execution_id = ?"

INSTANCE_COLUMNS = """
instance_id, execution_id, name, status, created_at, updated_at, input, output, custom_status,
parent_instance_id, parent_execution_id, parent_task_id
"""
ADD_INSTANCE = f"INSERT INTO durable_instance ({INSTANCE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
READ_INSTANCE = f"SELECT {INSTANCE_COLUMNS} FROM durable_instance WHERE instance_id = ?"
READ_INSTANCES = f"""
SELECT {INSTANCE_COLUMNS} FROM durable_instance
WHERE instance_id > :after AND substr(instance_id, 1, length(:prefix)) = :prefix
    AND created_at >= :created_from AND created_at <= :created_to
    AND (:statuses = '' OR instr(:statuses, ',' || status || ',') > 0)
ORDER BY instance_id LIMIT :top
"""
UPDATE_INSTANCE = """
UPDATE durable_instance SET status = :status, updated_at = :at, output = :output, custom_status = :custom_status
WHERE instance_id = :instance_id AND execution_id = :execution_id
"""
CONTINUE_INSTANCE = """
UPDATE durable_instance SET execution_id = :next_execution_id, input = :input, status = :status, updated_at = :at,
    custom_status = COALESCE(:custom_status, custom_status)
WHERE instance_id = :instance_id AND execution_id = :execution_id
"""

READ_HISTORY = "SELECT event FROM durable_history WHERE instance_id = ? ORDER BY position"
ADD_HISTORY = "INSERT INTO durable_history (instance_id, position, event) VALUES (?, ?, ?)"
REMOVE_HISTORY = "DELETE FROM durable_history WHERE instance_id = ?"
REMOVE_INSTANCE = (
    "DELETE FROM durable_instance WHERE instance_id = ?",
    REMOVE_HISTORY,
    REMOVE_ENTRIES,
    "DELETE FROM durable_activity WHERE instance_id = ?",
)

ADD_ACTIVITY = """
INSERT INTO durable_activity (instance_id, execution_id, task_id, name, input) VALUES (?, ?, ?, ?, ?)
"""
READ_ACTIVITIES = """
SELECT activity_number, instance_id, execution_id, task_id, name, input FROM durable_activity
WHERE activity_number > ? ORDER BY activity_number LIMIT ?
"""
REMOVE_ACTIVITY = "DELETE FROM durable_activity WHERE activity_number = ?"

READ_ENTITY = "SELECT state FROM durable_entity WHERE entity_id = ?"
WRITE_ENTITY = "INSERT OR REPLACE INTO durable_entity (entity_id, state) VALUES (?, ?)"
REMOVE_ENTITY = "DELETE FROM durable_entity WHERE entity_id = ?"
