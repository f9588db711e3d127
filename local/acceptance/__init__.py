"""The acceptance of a host: events, an undeliverable one, one that kills, a redrive, a replay, and the recount."""
