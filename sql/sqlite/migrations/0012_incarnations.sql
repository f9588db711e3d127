-- The life of the hub that a stream was read from, and the end of a stream whose hub is gone.

ALTER TABLE event_stream ADD COLUMN hub_created_at TEXT;  -- NULL until the hub was read for the first time
ALTER TABLE event_stream ADD COLUMN closed_at TEXT;  -- from then on nothing is committed to this stream
ALTER TABLE event_stream ADD COLUMN opened_by TEXT;  -- who opened an incarnation after the first, and why
ALTER TABLE event_stream ADD COLUMN opened_why TEXT;
