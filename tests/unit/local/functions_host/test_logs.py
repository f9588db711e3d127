import json
import logging
import sys

import pytest

from local.functions_host.logs import JsonForm, ShortForm


def record(**extra: object) -> logging.LogRecord:
    return logging.getLogger("app").makeRecord("app", logging.WARNING, "f.py", 1, "took %d", (7,), None, extra=extra)


def test_a_json_line_holds_the_record_its_extra_values_and_the_invocation() -> None:
    line = json.loads(JsonForm().format(record(action="ingested", at=object, invocation_id="i")))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "WARNING",
        "logger": "app",
        "message": "took 7",
        "invocation_id": "i",
        "action": "ingested",
        "at": "<class 'object'>",
    }


def test_a_record_outside_an_invocation_has_no_invocation_id() -> None:
    assert "invocation_id" not in json.loads(JsonForm().format(record(invocation_id=None)))


@pytest.mark.parametrize("form", [JsonForm(), ShortForm()])
def test_a_stack_is_kept(form: logging.Formatter) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        failed = record()
        failed.exc_info = sys.exc_info()
    assert "ValueError: no" in form.format(failed)


def test_the_short_form_is_one_line_with_the_extra_values() -> None:
    assert ShortForm().format(record(action="ingested")).endswith("WARNING took 7 action=ingested")
