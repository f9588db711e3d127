"""Trials of a transform in its tests. `hubledger/testing.py` has the names that a test imports."""
