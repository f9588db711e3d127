"""The command line: `bin/hubledger`. It is not deployed.

Each command has a module. `commands.py` puts them together.
"""
