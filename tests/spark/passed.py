"""`python -m tests.spark.passed`: store that all tests of Spark have passed with the files as they are.

Spark's tests take longer than all others together. While the files that they depend on are unchanged, `make test-all`
runs the proof of aggregation and the engines, and leaves the rest to `make soak`.
"""

import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "spark" / "passed.txt"
FILES = ("jobs/**/*.*", "core/aggregation/**/*.py", "sql/**/aggregation_*.sql", "tests/spark/**/*.py")


def digest() -> str:
    """Return the SHA-256 of the names and contents of all files that Spark's results depend on."""
    found = sha256()
    for path in sorted({path for pattern in FILES for path in ROOT.glob(pattern) if "__pycache__" not in path.parts}):
        found.update(f"{path.relative_to(ROOT).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()


def is_passed() -> bool:
    """Return True if the last whole run that passed had these files."""
    return PASSED.exists() and PASSED.read_text(encoding="utf-8").strip() == digest()


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"{sys.argv[0]} takes no arguments")
    PASSED.write_text(f"{digest()}\n", encoding="utf-8")
