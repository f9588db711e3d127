"""Mutants of the emulator's AMQP: windows, credit, drains, settlement, faults of peers, the bound of answers."""

from tests.mutants.mutant import in_file

RULES = "tests/unit/local/event_hubs/test_rules.py"
BROKER = "tests/unit/local/event_hubs/test_broker.py"
AMQP = "tests/unit/local/event_hubs/test_amqp.py"
EVENTS = "tests/unit/local/event_hubs/test_events.py"
PRODUCERS = "tests/unit/local/event_hubs/test_producers.py"
COMPLAINTS = "tests/unit/local/event_hubs/test_complaints.py"
SASL = "tests/unit/local/event_hubs/test_sasl.py"
LEAD = "tests/unit/local/event_hubs/test_lead.py"
TURNS = "tests/unit/local/event_hubs/test_turns.py"

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
        "local/event_hubs/links.py",
        TURNS,
        ("a link has its turns twice", "        if self._has_turn:\n            return\n", ""),
        ("a turn has no end", "TURN = 4 ", "TURN = 1_000_000 "),
        (
            "a drain is answered between two turns",
            "if self._owes_drain and not self._has_turn:",
            "if self._owes_drain:",
        ),
    ),
    *in_file(
        "local/event_hubs/links.py",
        LEAD,
        (
            "a link that is held has credit",
            "            self.credit = 0\n            self.session",
            "            self.session",
        ),
        ("a link gets no credit after its wait", "        if self._holds == 0:\n            self.grant()\n", ""),
        ("a link that is held gets new credit", "if self._holds == 0 and self.credit <=", "if self.credit <="),
        ("a link may send without credit and without end", "elif self.credit < -_OVERRUN:", "elif False:"),
    ),
    *in_file(
        "local/event_hubs/sessions.py",
        LEAD,
        (
            "a link ends without its outcomes",
            "        self._outcomes.release(link)\n        self.send(",
            "        self.send(",
        ),
        ("a session ends without its outcomes", "        self._outcomes.release()\n", ""),
    ),
    *in_file(
        "local/event_hubs/sessions.py",
        TURNS,
        (
            "a link has a turn after its end",
            "        if self.links.get(link.handle) is link:\n            link.take",
            "        if True:\n            link.take",
        ),
    ),
    *in_file(
        "local/event_hubs/outcomes.py",
        LEAD,
        ("no outcome waits", "each.gate.is_too_long:", "False:"),
        ("a settled delivery has an outcome", "if not each.is_settled:", "if True:"),
        ("outcomes outlive their connection", "        self._held.clear()\n", ""),
    ),
    *in_file(
        "local/event_hubs/lead.py",
        LEAD,
        ("the fastest owner counts", "return any(max(", "return all(max("),
        ("an expired event holds a publisher", "max(owner.next_sequence, first)", "owner.next_sequence"),
        ("an owner that stands still counts", " if not seen.stands)", ")"),
        ("an owner that moves again does not count", "            seen.stands = False\n", ""),
        (
            "a publisher waits for an owner that left",
            "        self._owners.pop(owner, None)\n        self._look()",
            "        self._owners.pop(owner, None)",
        ),
        ("a group that stops starves the other", "NEIGHBOUR if someone_starves else STANDSTILL", "STANDSTILL"),
        ("an idle time counts as a standstill", "                seen.sequence = -1\n", "                pass\n"),
        ("a wait has no end", "elif now - since >= LONGEST_WAIT:", "elif False:"),
    ),
    *in_file(
        "local/event_hubs/log.py",
        LEAD,
        ("the lead is larger than the retained events", "min(lead, retained_events // 2)", "lead"),
    ),
    *in_file(
        "local/event_hubs/broker.py",
        LEAD,
        (
            "publishers wait for a reader without an epoch",
            "if reader.epoch is not None:\n            partition.lead",
            "if True:\n            partition.lead",
        ),
    ),
    *in_file(
        "local/feed/feeding.py",
        "tests/unit/local/feed/test_feeding.py",
        ("a feed that stops publishes what waits", " or self._stopping():", ":"),
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
        "core/remote/hub/shortcuts.py",
        "tests/unit/core/remote/hub/test_shortcuts.py",
        ("a read has no end", "asyncio.timeout(timeout)", "asyncio.timeout(None)"),
        (
            "a frame still begins a task",
            "        return await awaitable",
            "        return await asyncio.ensure_future(awaitable)",
        ),
        (
            "a message is annotated twice",
            "raw_amqp_message or annotated(message=message)",
            "annotated(message=message)",
        ),
        (
            "an unknown event is replaced",
            "if _attributes(direct(event_data, sample)) != _attributes(original(sample)):",
            "if False:",
        ),
        ("an unknown transport is replaced", "if TASK_PER_WAIT and used is asyncio:", "if TASK_PER_WAIT:"),
        ("a second call wraps the first", '        if hasattr(original, "original"):\n            return True\n', ""),
        ("an event forgets its message", "event._message = message", "event._message = None"),
    ),
    *in_file(
        "core/remote/hub/client.py",
        "tests/unit/core/remote/hub/test_client.py",
        ("the digits of a tracking id refuse a link", "40[14]\\b", "40[14]"),
    ),
    *in_file(
        "local/event_hubs/broker.py",
        BROKER,
        ("a request's token counts for nothing", "if request.token is not None and not", "if False and not"),
        ("a request's token opens its connection", "            grants = Grants()  # of this request alone\n", ""),
    ),
    *in_file(
        "local/event_hubs/management.py",
        BROKER,
        ("the sdk hides why a token is refused", "{} if is_of_token else", "{} if False else"),
        ("a refusal has no condition", "{} if is_of_token else", "{} if True else"),
        ("sections of null break a request", "None, given or {}, value)", "None, given, value)"),
    ),
    *in_file(
        "local/event_hubs/readers.py",
        BROKER,
        ("readers have no names", '.get(_NAME, "nil")', '.get("", "nil")'),
    ),
    *in_file(
        "local/event_hubs/log.py",
        BROKER,
        (
            "an empty partition had its last event in 1970",
            "self.last_enqueued_at = -1, NEVER",
            "self.last_enqueued_at = -1, 0",
        ),
    ),
    *in_file(
        "local/event_hubs/sessions.py",
        RULES,
        ("every sender settles later", "UByte(outgoing or wanted.sender_settles)", "UByte(outgoing)"),
        ("every receiver settles first", "UByte(wanted.receiver_settles)", "UByte(0)"),
    ),
    *in_file(
        "local/event_hubs/sessions.py",
        AMQP,
        ("a reader refuses a stamped event", "None if outgoing else ULong(MAX_MESSAGE)", "ULong(MAX_MESSAGE)"),
    ),
    *in_file(
        "local/event_hubs/links.py",
        AMQP,
        (
            "the parts of a message that is too large are kept",
            "            self._parts.clear()\n        elif part:",
            "            pass\n        if part:",
        ),
        (
            "a message of exactly the limit is refused",
            "        if self._size > MAX_MESSAGE:\n            raise",
            "        if self._size >= MAX_MESSAGE:\n            raise",
        ),
    ),
    *in_file(
        "local/event_hubs/events.py",
        EVENTS,
        ("a body of null stays null", "if message[body] != _NULL else", "if True else"),
    ),
    *in_file(
        "local/event_hubs/sasl.py",
        SASL,
        ("a key is read from any response", "if len(parts) != 3:", "if False:"),
        ("an unknown mechanism is one with a key", "if mechanism != _WITH_A_KEY:", "if False:"),
    ),
    *in_file(
        "local/event_hubs/tokens.py",
        SASL,
        (
            "every password is that of a key",
            "if key is None or not hmac.compare_digest(key.value.encode(), value.encode()):",
            "if key is None:",
        ),
        ("every key has every right", "Grant((), key.rights, _NEVER)", "Grant((), frozenset((MANAGE,)), _NEVER)"),
    ),
    *in_file(
        "local/event_hubs/producers.py",
        PRODUCERS,
        ("a batch that comes again is stored again", "if batch in known.batches:", "if False:"),
        ("a gap between two batches is taken", "if batch[0] != expected:", "if batch[0] < expected:"),
        ("a lower epoch publishes", "    if epoch < known.epoch:", "    if False:"),
        ("the last number has none after it", "(number + count) & _LIMITS[_NUMBER]", "number + count"),
        (
            "a link that comes again gets new numbers",
            "known.last if claim.number is None else claim.number",
            "known.last",
        ),
        (
            "a producer is what its link says",
            "link.producer_id if given.producer_id is None else",
            "link.producer_id if True else",
        ),
        ("every id is known", "        if found is None:\n            raise", "        if False:\n            raise"),
    ),
    *in_file(
        "local/event_hubs/log.py",
        PRODUCERS,
        ("a batch that was not stored counts", "        self.producers.drop_staged()\n", ""),
    ),
    *in_file(
        "local/event_hubs/hubs.py",
        PRODUCERS,
        ("producers end with the process", "partition.producers.load(", "(lambda _: None)("),
    ),
    *in_file(
        "local/event_hubs/disk.py",
        PRODUCERS,
        ("producers outlive their hub", ', "DELETE FROM producer WHERE hub = ?")', ", )"),
    ),
    *in_file(
        "local/event_hubs/broker.py",
        PRODUCERS,
        (
            "every link is that of an idempotent producer",
            "if CAPABILITY in link.attach.capabilities else None",
            "if partition else None",
        ),
        (
            "a producer may send to a whole hub",
            "        if partition is None:\n            raise AmqpError",
            "        if False:\n            raise AmqpError",
        ),
    ),
    *in_file(
        "local/event_hubs/complaints.py",
        COMPLAINTS,
        ("each repeated wrong is a line", "< _QUIET:", "< 0:"),
        (
            "a wrong is logged once for ever",
            "self._written.get(line, now - _QUIET)",
            "self._written.get(line, now - _QUIET) + 10**9 * (line in self._written)",
        ),
        (
            "a new port is a new peer",
            "(host, action, reason[:_LONGEST])",
            "(f'{host}:{port}', action, reason[:_LONGEST])",
        ),
        ("the log of wrongs fills the memory", "            self._written.clear()\n", "            pass\n"),
    ),
    *in_file(
        "local/event_hubs/amqp.py",
        COMPLAINTS,
        ("a refused link is not logged", 'self.complain("attach",', '(lambda *_: None)("attach",'),
        (
            "a different protocol is not logged",
            'self.complain("greet",',
            '(lambda *_: None)("greet",',
        ),
    ),
)
