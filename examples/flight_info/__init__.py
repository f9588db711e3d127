"""Flights: their latest status, the history of their changes, and the punctuality of carriers."""
