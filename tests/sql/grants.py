"""The rights that a script of permissions grants."""

import re

from local.explain import Use
from tests.sql.statements import without_comments


def grants_of(script: str, role: str) -> set[Use]:
    grants = re.findall(rf"GRANT ([A-Z, ]+) ON hubledger\.(\w+) TO {role};", without_comments(script))
    return {Use(table, verb) for verbs, table in grants for verb in verbs.split(", ")}
