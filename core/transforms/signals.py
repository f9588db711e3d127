"""Where a signal may raise KeyboardInterrupt: in the main thread only, so that elsewhere the transform raised it."""

import threading


def takes_signals() -> bool:
    """Return True in the thread that Python gives the signals of the process to."""
    return threading.current_thread() is threading.main_thread()
