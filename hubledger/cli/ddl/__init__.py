"""The tables that row classes and aggregates declare, in both dialects, with the rights of the roles, and the next
migration of a room. The app runs nothing of it.
"""
