"""Texts that people wrote, without the subjects that they name."""

import json
import re
from collections.abc import Sequence

ERASED_WORD = "erased"


def without_subjects(text: str, subjects: Sequence[str]) -> str:
    """Return a text, or a JSON text, in which `erased` stands for each subject. Part of a longer word is none."""
    if not text:
        return text
    for subject in subjects:
        for written in dict.fromkeys((subject, json.dumps(subject)[1:-1])):
            text = re.sub(rf"(?<![\w-]){re.escape(written)}(?![\w-])", ERASED_WORD, text)
    return text
