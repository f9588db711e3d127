import json
import logging
import sys

from local.functions_host.logs import JsonForm
from local.programs import ShortForm


def record(**extra: object) -> logging.LogRecord:
    return logging.getLogger("app").makeRecord("app", logging.WARNING, "f.py", 1, "took %d", (7,), None, extra=extra)


def test_a_json_line_holds_the_record_its_extra_values_and_the_invocation_if_there_is_one() -> None:
    line = json.loads(JsonForm().format(record(action="ingested", at=object, invocation_id="i")))
    assert line.pop("time").endswith("+00:00")
    expected = {"level": "WARNING", "logger": "app", "message": "took 7", "invocation_id": "i"}
    assert line == {**expected, "action": "ingested", "at": "<class 'object'>"}
    assert "invocation_id" not in json.loads(JsonForm().format(record(invocation_id=None)))


def test_both_forms_hold_the_stack() -> None:
    failed = record()
    try:
        raise ValueError("no")
    except ValueError:
        failed.exc_info = sys.exc_info()
    assert all("ValueError: no" in form.format(failed) for form in (JsonForm(), ShortForm()))


def test_the_short_form_is_one_line_with_the_extra_values() -> None:
    assert ShortForm().format(record(action="ingested")).endswith("WARNING took 7 action=ingested")
