"""Trials of a transform in its tests; `local/testing.py` has the names that a test imports."""
