"""Become `func start`: a child of a run is a module of Python, and Microsoft's host is a program."""

import os
import sys

if __name__ == "__main__":
    os.execvp("func", ["func", "start", *sys.argv[1:]])
