"""The command line: `python -m hubledger`. It is not deployed.

Each command has a module; `commands.py` puts them together.
"""
