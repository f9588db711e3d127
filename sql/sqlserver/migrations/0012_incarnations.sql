-- The life of the hub that a stream was read from, and the end of a stream whose hub is gone.

ALTER TABLE hubledger.event_stream ADD hub_created_at datetime2(7);  -- NULL until the hub was read for the first time
ALTER TABLE hubledger.event_stream ADD closed_at datetime2(7);  -- from then on nothing is committed to this stream
ALTER TABLE hubledger.event_stream ADD opened_by nvarchar(400);  -- who opened an incarnation after the first, and why
ALTER TABLE hubledger.event_stream ADD opened_why nvarchar(400);
