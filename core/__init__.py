"""Hubledger: the version of this release, and the room of an app whose settings name none."""

VERSION = "0.2.0"

DEFAULT_TRANSFORM = "examples.home_security"
