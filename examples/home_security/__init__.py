"""A home-security company: what homes report, their alerts, and their activity by time."""
