"""The programs of azd's hooks. azd runs those that have the name of a hook."""
