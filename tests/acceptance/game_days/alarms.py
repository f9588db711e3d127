"""The alarms of a running app: the queries of infra/alerts, evaluated over the lines of its watch."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import eq, ge, gt, le, lt
from typing import Any

from tests.infra.test_alerts import OF_THE_WORKSPACE, QUERIES

Line = Mapping[str, Any]
BIN = timedelta(minutes=5)
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"==": eq, ">": gt, "<": lt, ">=": ge, "<=": le}
READ: Mapping[str, Callable[[Any], Any]] = {"tobool": bool, "tolong": int, "todouble": float, "tostring": str}
VALUE = r'(?P<value>"[^"]*"|true|false|-?[\d.]+)'
FACT = re.compile(rf"(?:(?P<read>\w+)\()?Properties\.(?P<fact>\w+)\)? (?P<compared>==|[<>]=?) {VALUE}")
SUMMED = re.compile(rf"(?P<fact>\w+) (?P<compared>==|[<>]=?) {VALUE}")
LEAST = re.compile(
    r"(?P<name>\w+) = min\(\w+\(Properties\.(?P<fact>\w+)\)\)(?:, \w+ = max\(.*\))? by bin\(TimeGenerated, 5m\)"
)
COUNT = re.compile(r"(?P<name>\w+) = count\(\)")


class NotEvaluated(Exception):
    """A query has a step that this file does not know: teach it, or the game days prove nothing about the alarm."""


def firing(lines: Sequence[Line], limits: Mapping[str, object]) -> set[str]:
    watched = [name for name in QUERIES if name not in OF_THE_WORKSPACE]
    return {name for name in watched if rows_of(QUERIES[name], lines, limits)}


def rows_of(query: str, lines: Iterable[Line], limits: Mapping[str, object]) -> list[Line]:
    text = re.sub(r"\{(\w+)\}", lambda limit: str(limits[limit[1]]), query)
    table, *steps = [line for line in text.splitlines() if line and not line.startswith("//")]
    if table != "AppTraces":
        raise NotEvaluated(table)
    rows = list(lines)
    for step in steps:
        verb, _, words = step.removeprefix("| ").partition(" ")
        if verb == "where":
            rows = [row for row in rows if all(_holds(row, each) for each in words.split(" and "))]
        elif verb == "summarize" and (counted := COUNT.fullmatch(words)):
            rows = [{counted["name"]: len(rows)}]
        elif verb == "summarize" and (least := LEAST.fullmatch(words)):
            rows = [{least["name"]: min(each)} for each in _bins(rows, least["fact"]).values()]
        elif verb != "project":
            raise NotEvaluated(step)
    return rows


def _holds(row: Line, words: str) -> bool:
    asked = FACT.fullmatch(words) or SUMMED.fullmatch(words)
    if asked is None:
        raise NotEvaluated(words)
    if asked["fact"] not in row:
        return False
    text = asked["value"]
    value = text == "true" if text in ("true", "false") else text[1:-1] if text.startswith('"') else float(text)
    read = READ[asked.groupdict().get("read") or ("tostring" if text.startswith('"') else "todouble")]
    return COMPARED[asked["compared"]](read(row[asked["fact"]]), value)


def _bins(rows: Iterable[Line], fact: str) -> Mapping[datetime, list[float]]:
    found: dict[datetime, list[float]] = {}
    for row in rows:
        at = datetime.fromisoformat(row["time"])
        found.setdefault(at - (at - datetime.min.replace(tzinfo=at.tzinfo)) % BIN, []).append(float(row[fact]))
    return found
