"""A child process for tests: `python -m tests.local.child WHAT`."""

import signal
import sys
import threading

WHAT = sys.argv[1] if len(sys.argv) > 1 else ""


def main() -> int:
    """Run until SIGTERM (ready) or SIGKILL (deaf), or end at once: with an error (dead) or well (done)."""
    if WHAT == "dead":
        sys.stderr.write("no such hub\n")
        return 3
    if WHAT == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if WHAT in ("ready", "deaf"):
        sys.stdout.write("child ready on 42\n")
        sys.stdout.flush()
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
