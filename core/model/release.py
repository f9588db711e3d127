"""The version of this release, which pyproject.toml has too and no deployment brings, and the room of an app whose
settings name none."""

VERSION = "0.2.0"
DEFAULT_TRANSFORM = "examples.home_security"
