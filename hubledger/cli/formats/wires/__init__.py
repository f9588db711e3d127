"""The modules `wire.py` of new rooms, one for each format: `new` copies them as they are."""
