"""Mutants of the emulator's AMQP: windows, credit, drains, settlement, faults of peers, the bound of answers."""

from tests.mutants.mutant import in_file

RULES = "tests/unit/local/event_hubs/test_rules.py"

MUTANTS = (
    *in_file(
        "local/event_hubs/sessions.py",
        RULES,
        (
            "a delivery of several frames overruns the window",
            "while cut is not None and self._peer_window > 0:",
            "while cut:",
        ),
        (
            "a negative window is a large one",
            "max(0, flow.incoming_window + difference(flow.next_incoming, self._next_outgoing))",
            "(flow.next_incoming + flow.incoming_window - self._next_outgoing) & SERIAL",
        ),
        (
            "a link's flow opens the window for itself alone",
            "        self.pump()\n        if flow.echo",
            "        if flow.echo",
        ),
        ("a cut delivery outlives its link", "        if self.is_cut(link.handle):\n", "        if False:\n"),
        (
            "frames on an unknown handle are ignored",
            "if link is None and handle not in self._left:",
            "if False:",
        ),
        (
            "a frame on its way to a detached link ends the session",
            "if link is None and handle not in self._left:",
            "if link is None:",
        ),
        ("a peer of small frames never gets a new window", "if self._window <= _WINDOW // 2:", "if False:"),
        ("a handle is used again too early", " or attach.handle in self._farewells:", ":"),
        ("a link flow does not say that it drains", "None, link.is_draining)", "None, False)"),
    ),
    *in_file(
        "local/event_hubs/links.py",
        RULES,
        ("a drain does not wait for the window", "(self.credit > 0 and self._next) or ", ""),
        ("a drain is answered in the midst of a delivery", " or self.session.is_cut(self.handle):", ":"),
        (
            "the last transfer cannot settle a delivery",
            "self._is_settled |= transfer.settled",
            "self._is_settled = first.settled",
        ),
        ("a malformed message leaves its link", "isinstance(failure, MalformedMessage)", "False"),
        ("an aborted delivery uses no credit", "            self._count()\n            return", "            return"),
    ),
    *in_file(
        "local/event_hubs/serials.py",
        RULES,
        ("a count does not begin again", "((first - second + _HALF) & SERIAL) - _HALF", "first - second"),
    ),
    *in_file(
        "local/event_hubs/sections.py",
        RULES,
        ("a section of any kind is one", 'message[body] not in _CONSTRUCTORS.get(code, b"")', "False"),
    ),
    *in_file(
        "local/event_hubs/peers.py",
        RULES,
        ("answers to a peer that does not read have no bound", "            refuse_unread(self._size)\n", ""),
        ("a slow reader is closed", "self._transport.get_write_buffer_size()", "self._size"),
    ),
    *in_file(
        "local/event_hubs/answers.py",
        RULES,
        ("answers that the peer took count for ever", "            self._size -= sum(map(len, taken))\n", ""),
        ("answers of a closed link count for ever", "            take(len(box))\n", ""),
        ("answers that wait for credit have no bound", "        refuse_unread(self._size + ", "        (self._size + "),
        ("an answer to each link of a closed window has no bound", " + sum(one.waiting for one in self._boxes)", ""),
    ),
    *in_file(
        "local/event_hubs/errors.py",
        "tests/unit/local/event_hubs/test_broker.py",
        (
            "an unknown entity has words of our own",
            "The messaging entity '{entity}' could not be found.",
            "no {entity}",
        ),
    ),
    *in_file(
        "core/remote/hub/client.py",
        "tests/unit/core/remote/hub/test_client.py",
        ("the digits of a tracking id refuse a link", "40[14]\\b", "40[14]"),
    ),
)
