"""The place of your own apps, each in a folder: `bin/hubledger new NAME` makes one. No release changes them."""
