"""Mutants around core: adapters, requests and their access, the worker, settings, and the local hub and host."""

from tests.mutants.mutant import in_file

HANDLERS, HUB, HOST = "tests/handlers", "tests/local/event_hubs", "tests/local/functions_host"

MUTANTS = (
    *in_file(
        "handlers/event_batches.py",
        f"{HANDLERS}/test_adapters.py",
        (
            "two events with one number are a batch",
            "if event.sequence_number <= previous:",
            "if event.sequence_number < previous:",
        ),
        (
            "properties that the host could not read are lost",
            '_READ) else Unread("json", json.dumps(own))',
            "_READ) else {}",
        ),
    ),
    *in_file(
        "core/settings.py",
        "tests/core/test_settings.py",
        (
            "the hub reader may share the trigger's consumer group",
            "if settings.reader_group.lower() == settings.consumer_group.lower():",
            'if settings.reader_group == "":',
        ),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/core/worker/test_work.py",
        (
            "the loss of a partition interrupts a commit",
            "        await asyncio.wait([task])  #",
            "        await task  #",
        ),
    ),
    *in_file(
        "core/worker/health.py",
        "tests/core/worker/test_health.py",
        ("work that hangs is no fault", "if begun_at < since)", "if begun_at < 0)"),
    ),
    *in_file(
        "local/event_hubs/readers.py",
        f"{HUB}/test_broker.py",
        (
            "a reader without an epoch reads beside one that has an epoch",
            "(reader.epoch is not None and reader.epoch >= other.epoch)",
            "reader.epoch is None or reader.epoch >= other.epoch",
        ),
    ),
    *in_file(
        "local/event_hubs/log.py",
        f"{HUB}/test_log.py",
        (
            "events of two messages share sequence numbers",
            "sequence = self.next_sequence + len(self._staged)",
            "sequence = self.next_sequence",
        ),
    ),
    *in_file(
        "local/event_hubs/hubs.py",
        f"{HUB}/test_hubs.py",
        (
            "events that the disk refused are read",
            "                partition.drop_staged()\n",
            "                partition.append_staged()\n",
        ),
    ),
    *in_file(
        "local/functions_host/partition_pump.py",
        f"{HOST}/test_partition_pump.py",
        (
            "a failed batch does not move the host's checkpoint",
            " is Ending.ABANDONED:\n",
            " is not Ending.SUCCEEDED:\n",
        ),
        (
            "an abandoned batch moves the host's checkpoint",
            "            self.stop()  # to continue would checkpoint past this batch\n",
            "            self.stop()\n            self._checkpoint.advance(batch[-1].position)\n",
        ),
        (
            "a batch that ends after a stop moves the host's checkpoint",
            "        if not self._is_stopping:\n",
            "        if batch:\n",
        ),
    ),
    *in_file(
        "handlers/api.py",
        f"{HANDLERS}/test_api.py",
        ("monitors may read letters", '"dead-letters", READING', '"dead-letters", COUNTING'),
    ),
    *in_file(
        "core/api/route.py",
        f"{HANDLERS}/test_api.py",
        ("a change needs no key", 'Level("changing", needs_key=True', 'Level("changing", needs_key=False'),
    ),
    *in_file(
        "handlers/web/identity.py",
        f"{HANDLERS}/web/test_identity.py",
        ("a forged header is trusted", "    if not _is_trusted(headers, access):\n        return UNVERIFIED\n", ""),
    ),
    *in_file(
        "core/api/room_operations.py",
        f"{HANDLERS}/web/test_links.py",
        ("a link opens every home", '{link.purpose}\\n{subject}\\n{expires}"', '{link.purpose}\\n{expires}"'),
        ("any signature is accepted", "if form is None or not any(right):", "if form is None:"),
    ),
    *in_file(
        "handlers/web/answering.py",
        f"{HANDLERS}/test_access.py",
        ("no caller is checked", "        refuse_without_role(caller, level, access)\n", "        pass\n"),
    ),
    *in_file(
        "core/model/shapes.py",
        f"{HANDLERS}/test_access.py",
        ("a reader sees errors", "held | dict.fromkeys(shown.quoting())", "held"),
    ),
    *in_file(
        "handlers/web/answering.py",
        f"{HANDLERS}/web/test_edges.py {HANDLERS}/operations/test_replays.py",
        (
            "an unforeseen fault reaches the host",
            "        return answer_unexpected(route, invocation_id)\n",
            "        raise\n",
        ),
    ),
    *in_file(
        "local/event_hubs/producers.py",
        f"{HUB}/test_producers.py",
        ("a batch that comes again is stored again", "if batch in known.batches:", "if False:"),
    ),
    *in_file(
        "local/functions_host/blobs.py",
        "tests/acceptance/functions_host/test_blob_service.py",
        (
            "a checkpoint is written over one that was not read",
            ", _tag(found)):",
            ', request.headers.get("If-Match")):',
        ),
    ),
)
