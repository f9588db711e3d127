"""Mutants of the stored minutes, and of the callers that the local host and the emulator refuse."""

from tests.mutants.mutant import in_file

MUTANTS = (
    *in_file(
        "core/ledger/store/minutes.py",
        "tests/contract/operator/test_minutes.py",
        ("each watch of a minute writes a row", ".replace(second=0, microsecond=0)", ""),
        ("minutes stay for ever", "started_at - KEPT", "started_at - 9 * KEPT"),
    ),
    *in_file(
        "local/functions_host/callers.py",
        "tests/acceptance/functions_host/test_callers.py",
        (
            "a page of a different site reaches the host",
            "return (_from_here, _in_json, _within_limit, read_whole)",
            "return (_in_json, _within_limit, read_whole)",
        ),
        ("an HTML form reaches /admin", "_from_here, _in_json, _within", "_from_here, _within"),
        ("the host waits for a slow body for ever", "_within_limit, read_whole)", "_within_limit)"),
    ),
    *in_file(
        "local/event_hubs/amqp.py",
        "tests/unit/local/event_hubs/test_peers.py",
        ("the emulator answers to every host name", "        refuse_foreign(peer.hostname)\n", ""),
        ("a busy peer whose frames come in parts is cut", "self._frames += self._opened", "pass"),
    ),
)
