"""The programs of azd's hooks. The shell scripts of this folder only call them."""
