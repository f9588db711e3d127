"""The aggregates of flights, one in each module."""
