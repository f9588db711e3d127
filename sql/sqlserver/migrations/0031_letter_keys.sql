-- What tells two partition keys apart: a key may be longer than an index takes, and T-SQL ignores blanks at its end, so this is
-- a hash of its bytes. The column is computed and not persisted: adding it writes no row, and only an index stores it.

ALTER TABLE hubledger.event_hub_dead_letter ADD key_hash AS CONVERT(binary(32), HASHBYTES('SHA2_256', partition_key));
