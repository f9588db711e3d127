-- The rights of the app and of the Spark jobs on the tables of this room, as its classes declare them. Run it after
-- sql/sqlserver/permissions.sql, which creates the roles.

GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.home TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.sensor_reading TO hubledger_app;
GRANT SELECT, INSERT, DELETE ON hubledger.home_alert TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.home_activity TO hubledger_app;
GRANT SELECT, DELETE ON hubledger.home_activity_staged TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.home_activity_hour TO hubledger_app;
GRANT SELECT, DELETE ON hubledger.home_activity_hour_staged TO hubledger_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON hubledger.home_activity_day TO hubledger_app;
GRANT SELECT, DELETE ON hubledger.home_activity_day_staged TO hubledger_app;

GRANT SELECT ON hubledger.home TO hubledger_job;
GRANT SELECT ON hubledger.sensor_reading TO hubledger_job;
GRANT SELECT ON hubledger.home_alert TO hubledger_job;
GRANT SELECT ON hubledger.home_activity TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.home_activity_staged TO hubledger_job;
GRANT SELECT ON hubledger.home_activity_hour TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.home_activity_hour_staged TO hubledger_job;
GRANT SELECT ON hubledger.home_activity_day TO hubledger_job;
GRANT SELECT, INSERT ON hubledger.home_activity_day_staged TO hubledger_job;
