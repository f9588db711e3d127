"""A home-security company on one machine: homes publish to an event hub, a record says what must become of it."""
