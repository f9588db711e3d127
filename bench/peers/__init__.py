"""Consumers as other people write them, beside ours: the same hub, events, transform, and durability of SQLite."""
