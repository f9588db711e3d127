"""`python -m tests.exploration`: explore every configuration, print what each search met, and the story of a fault."""

import argparse
import sys
import time

from tests.exploration.configurations import CONFIGURATIONS
from tests.exploration.explorer import Search, Violation


def main() -> int:
    parser = argparse.ArgumentParser(prog="make explore", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name of a configuration")
    parser.add_argument("--faults", type=int)
    wanted = parser.parse_args()
    for name, one in CONFIGURATIONS.items():
        if wanted.only not in name:
            continue
        world, began = one.prepare(), time.monotonic()
        faults = one.faults if wanted.faults is None else wanted.faults
        search = Search(world.database, one.actors(world), world.promise, faults)
        try:
            found = search.run()
        except Violation as violation:
            print(f"{name}: after {search.found}\n{violation}")
            continue
        print(f"{name}: {faults} faults, {found}, {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
