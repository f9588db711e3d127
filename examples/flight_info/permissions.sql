-- The rights of the app and of the Spark jobs on the tables of this room, as its classes declare them. Run it after
-- sql/sqlserver/permissions.sql, which creates the roles.

GRANT SELECT, INSERT, UPDATE ON hubledger.flight_status TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.flight_change TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.flight_punctuality TO hubledger_app;
GRANT SELECT, DELETE ON hubledger.flight_punctuality_staged TO hubledger_app;

GRANT SELECT ON hubledger.flight_status TO hubledger_job;
GRANT SELECT ON hubledger.flight_change TO hubledger_job;
GRANT SELECT ON hubledger.flight_punctuality TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.flight_punctuality_staged TO hubledger_job;
