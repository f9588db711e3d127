"""`python -m hubledger`: the command line, which is not deployed."""

import sys

from hubledger.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
