"""A trial of a transform on a file of events: the app's own ingestion into a store of its own, without a hub."""
