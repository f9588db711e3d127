-- only: before the first stream
-- The tables of the examples come from their own migrations (examples/*/migrations). A database that has a stream keeps
-- its tables, whatever they hold; a new one has no table of an example that its TRANSFORM does not name.

DROP TABLE IF EXISTS home_activity_staging;
DROP TABLE IF EXISTS home_activity_staged;
DROP TABLE IF EXISTS home_activity_hour_staged;
DROP TABLE IF EXISTS home_activity_day_staged;
DROP TABLE IF EXISTS home_activity;
DROP TABLE IF EXISTS home_activity_hour;
DROP TABLE IF EXISTS home_activity_day;
DROP TABLE IF EXISTS home;
DROP TABLE IF EXISTS sensor_reading;
DROP TABLE IF EXISTS home_alert;
DROP TABLE IF EXISTS flight_punctuality_staged;
DROP TABLE IF EXISTS flight_punctuality;
DROP TABLE IF EXISTS flight_status;
DROP TABLE IF EXISTS flight_change;
