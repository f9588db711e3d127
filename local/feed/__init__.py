"""A business on one machine: homes or flights publish to an event hub, and a record holds the expected outcomes."""
