"""The smoke tests of a deployed app: its routes, and one event from the hub to its row."""
