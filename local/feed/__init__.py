"""A business on one machine: homes or flights publish to an event hub, a record says what must become of it."""
