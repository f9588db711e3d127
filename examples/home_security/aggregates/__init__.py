"""The aggregates of a home-security company, one in each module."""
