"""Mutants of the log lines of batches."""

from tests.mutants.mutant import in_file

MUTANTS = (
    *in_file(
        "core/ingest/lines.py",
        "tests/unit/core/ingest/test_lines.py",
        ("sums that are logged are counted again", "        self._sums.clear()\n", ""),
        ("the limit of lines holds for ever, not for a minute", "        self._logged.clear()\n", ""),
        (
            "ordinary batches use up the lines of unusual ones",
            "self._logged[unusual] < self",
            "self._logged.total() < self",
        ),
        (
            "a batch has its line and is summed too",
            "            else:\n                self._sum(",
            "            if counts:\n                self._sum(",
        ),
    ),
    *in_file(
        "handlers/batch_log.py",
        "tests/unit/handlers/test_batch_log.py",
        (
            "a timer that has rung is never set again",
            "            self._cancel = None\n        _log",
            "            pass\n        _log",
        ),
        ("the last sums end with the process", "        _log(self._lines.rest())\n", ""),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/unit/core/worker/test_work.py",
        (
            "a worker without batches logs no sums",
            "        _log_lines(lines.due(clock.now()))\n",
            "        clock.now()\n",
        ),
        (
            "a client that fails to close takes the last sums with it",
            "    try:\n        await client.close()\n    finally:\n        _log",
            "    await client.close()\n    if True:\n        _log",
        ),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/acceptance/worker/test_draining.py::test_a_batch_that_hangs_does_not_hold_a_worker_that_is_told_to_end",
        (
            "a worker that is cut off loses the last sums",
            "    terms.cut_off.callback(lambda: _log_lines(lines.rest()))\n",
            "",
        ),
    ),
)
