-- only: before the first stream
-- Every text has the collation of generated tables. A database that has a stream keeps its columns, which hold the same
-- texts: no key has one of them.

ALTER TABLE hubledger.flight_status ALTER COLUMN status varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL;
ALTER TABLE hubledger.flight_status ALTER COLUMN departure_gate nvarchar(10) COLLATE Latin1_General_100_BIN2 NULL;

ALTER TABLE hubledger.flight_change ALTER COLUMN status varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL;
ALTER TABLE hubledger.flight_change ALTER COLUMN departure_gate nvarchar(10) COLLATE Latin1_General_100_BIN2 NULL;
