-- The role of the running app. It cannot change the schema, and deletes only from the tables that name DELETE here. Run
-- this once as an owner, and after it the permissions.sql of each room, for its tables. Then:
--   ALTER ROLE hubledger_app ADD MEMBER [name of the app's managed identity];
IF DATABASE_PRINCIPAL_ID(N'hubledger_app') IS NULL
    CREATE ROLE hubledger_app;

GRANT SELECT ON hubledger.schema_migration TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.event_stream TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.event_hub_checkpoint TO hubledger_app;
GRANT SELECT, INSERT ON hubledger.partition_anchor TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.sequence_gap TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.event_hub_ownership TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.partition_stop TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.batch_attempt TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.batch_ledger TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.event_hub_dead_letter TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.dead_letter_attempt TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.task TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.task_part TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.replay_diff TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.replay_state TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.retracted_row TO hubledger_app;
GRANT SELECT, UPDATE, DELETE ON hubledger.staged_event TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.aggregation_cut TO hubledger_app;
GRANT SELECT, INSERT, UPDATE ON hubledger.aggregation_run TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.aggregation_failure TO hubledger_app;
GRANT SELECT, DELETE ON hubledger.staged_result TO hubledger_app;
GRANT SELECT, UPDATE, DELETE ON hubledger.staged_slice TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.erased_subject TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.stream_minute TO hubledger_app;

-- The role of the Spark jobs: they read the tables that they add up or compare, and write only staging tables.
IF DATABASE_PRINCIPAL_ID(N'hubledger_job') IS NULL
    CREATE ROLE hubledger_job;

GRANT SELECT ON hubledger.batch_ledger TO hubledger_job;
GRANT SELECT ON hubledger.event_hub_checkpoint TO hubledger_job;
GRANT SELECT ON hubledger.event_hub_dead_letter TO hubledger_job;
GRANT SELECT ON hubledger.retracted_row TO hubledger_job;
GRANT SELECT ON hubledger.aggregation_run TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.staged_result TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.staged_slice TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.staged_event TO hubledger_job;
