"""Programs that are never deployed."""
