"""Python's interpreter in a process that ingests: how often it looks for cycles, and how soon a thread has its turn."""

import gc
import sys

YOUNG_OBJECTS = 20_000  # new objects until Python looks for cycles, not 700: events wait by the thousand and have none
TURN = 0.001  # seconds, not 0.005: while a thread waits for the one that receives, its transaction holds the store


def prepare_interpreter() -> None:
    """Set both for this process."""
    gc.set_threshold(YOUNG_OBJECTS)
    sys.setswitchinterval(TURN)
