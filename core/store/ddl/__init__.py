"""The tables that classes declare, in both dialects: of row classes and of aggregates, with the rights of the roles, and
the next migration of a room. The app runs nothing of it.
"""
