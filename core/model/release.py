"""The version of this release: that of pyproject.toml, which is not deployed."""

VERSION = "0.2.0"
