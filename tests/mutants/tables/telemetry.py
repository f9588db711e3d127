"""Mutants of telemetry: its links, its spans and metrics, and what switches it on and off."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core/remote/telemetry"

MUTANTS = (
    *in_file(
        "core/remote/telemetry/links.py",
        f"{UNIT}/test_links.py",
        ("links have no limit", "if len(links) == LINKS:", "if len(links) == 10 * LINKS:"),
        ("a context that is not valid is linked", "return found if found.is_valid else None", "return found"),
        ("properties that cannot be read are asked", "if type(properties) is not dict:", "if properties is None:"),
        ("only the property of W3C is read", 'NAMES = ("traceparent", "Diagnostic-Id")', 'NAMES = ("traceparent",)'),
        ("a property of any size is kept", "and len(value) == LENGTH", "and len(value) >= LENGTH"),
    ),
    *in_file(
        "core/remote/telemetry/signals.py",
        f"{UNIT}/test_signals.py",
        ("a span tells the text of an error", "record_exception=False", "record_exception=True"),
        ("a failed batch has a span without a fault", "span.set_status(StatusCode.ERROR)", "pass"),
        ("the metrics of a failed batch have no class of error", "told = {**asked, **seen.error}", "told = {**asked}"),
        (
            "redelivered events are not counted",
            'outcomes |= {"redelivered": report.redelivered,',
            'outcomes |= {"redelivered": 0,',
        ),
        ("a gap of the timer has no absent events", '"absent": found.absent}', '"absent": 0}'),
    ),
    *in_file(
        "core/remote/telemetry/instruments.py",
        f"{UNIT}/test_signals.py",
        ("a fault of the telemetry fails the batch", "            note_fault(fault)", "            raise"),
    ),
    *in_file(
        "core/remote/telemetry/instruments.py",
        f"{UNIT}/test_gauges.py",
        ("a gauge repeats its last value without end", "if each[0] >= oldest}", "}"),
    ),
    *in_file(
        "core/remote/telemetry/gauges.py",
        f"{UNIT}/test_gauges.py",
        ("the age of the lag is that of no partition", "waits.get(id, 0.0)", "0.0"),
        ("a balanced ledger is told as a fault", "int(not seen.books.balanced)", "int(seen.books.balanced)"),
    ),
    *in_file(
        "core/remote/telemetry/calls.py",
        f"{UNIT}/test_signals.py",
        ("calls to the store are not counted", "calls.count += 1", "calls.count += 0"),
        ("a lost race is no conflict", "elif isinstance(fault, LOST_RACES):", "elif isinstance(fault, ()):"),
    ),
    *in_file(
        "core/remote/telemetry/opening.py",
        f"{UNIT}/test_opening.py",
        ("a disabled SDK is asked for", 'environ.get(DISABLED, "").strip().lower() == "true"', "False"),
        ("the end of the process waits for the collector", "atexit.register(close, providers)", "pass"),
        ("an end has no limit", "ending.join(max(0.0, ends_at - time.monotonic()))", "ending.join()"),
        ("metrics go to an address that nobody named", "if everything or environ.get(endpoint):", "if True:"),
        (
            "a wrong variable stops the app",
            "        return PLAIN\n\n\ndef is_asked_for",
            "        raise\n\n\ndef is_asked_for",
        ),
    ),
)
