"""A test that a machine cannot run is skipped with the name of the missing thing and the command that brings it."""

import re

from tests.checkout import files_of_checkout
from tests.repo.product import ROOT

MISSING = re.compile(r'"[^"\n]*\b(?:is|are) (?:not installed|missing)\b[^"\n]*"')
BRINGS = re.compile(r": .*\b(?:install|installs|make) ")


def test_a_reason_names_the_command_that_brings_what_is_missing() -> None:
    reasons: dict[str, str] = {}
    for name in files_of_checkout():
        if re.search(r"(^|/)tests/.*\.py$", name):
            text = (ROOT / name).read_text(encoding="utf-8")
            for line in text.splitlines():
                if re.search(r"\bskip\(|skipif\(|importorskip\(|\breason=|^(NO|WITHOUT)_\w+ = ", line):
                    reasons |= dict.fromkeys(MISSING.findall(line), name)
    assert len(reasons) >= 8
    assert {reason: name for reason, name in reasons.items() if not BRINGS.search(reason)} == {}
