"""The place of your own apps, each in a folder: `python -m hubledger new NAME` makes one. No release changes them."""
