"""`make test` shows each subject of the product from end to end."""

import re

from tests.repo.product import ROOT
from tests.schedule import SLOW

SUBJECTS = {
    "event", "letter", "replay", "gap", "aggregation", "incarnation", "worker", "API", "page", "command line", "room",
    "upgrade",
}  # fmt: skip
MARK = re.compile(r'pytest\.mark\.proof\("([^"]+)"\)')


def test_each_subject_has_a_proof_and_no_proof_is_of_anything_else() -> None:
    texts = [path.read_text(encoding="utf-8") for room in SLOW for path in (ROOT / "tests" / room).rglob("test_*.py")]
    assert {subject for text in texts for subject in MARK.findall(text)} == SUBJECTS
