"""The formats of bodies: what a room has for each, and how a sample becomes bodies of it."""
