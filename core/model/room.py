"""The room of an app whose settings name none."""

DEFAULT_TRANSFORM = "examples.home_security"
