"""Mutants around core: the trigger's adapters, requests, timers, the worker, settings, and the local hub and host."""

from tests.mutants.mutant import in_file

HANDLERS, HUB, HOST = "tests/unit/handlers", "tests/unit/local/event_hubs", "tests/unit/local/functions_host"

MUTANTS = (
    *in_file(
        "handlers/adapters.py",
        f"{HANDLERS}/test_adapters.py",
        (
            "two events with one number are a batch",
            "if event.sequence_number <= previous:",
            "if event.sequence_number < previous:",
        ),
        (
            "an array of a different length is used",
            "if not isinstance(array, list) or len(array) != length:",
            "if not isinstance(array, list) or len(array) < length:",
        ),
        (
            "properties that the host could not read are lost",
            '_READ) else Unread("json", json.dumps(own))',
            "_READ) else {}",
        ),
        (
            "every event has the time of the first",
            "if enqueued != before:",
            "if before is None:",
        ),
        (
            "a partition without an id is named",
            "if not isinstance(context.get(name), str) or not context[name]]",
            "if name not in context]",
        ),
    ),
    *in_file(
        "handlers/ingest.py",
        f"{HANDLERS}/test_function_app.py",
        ("the host tries a batch for ever", 'max_retry_count="8"', 'max_retry_count="-1"'),
    ),
    *in_file(
        "local/functions_host/durable/engine.py",
        f"{HOST}/durable/test_engine.py",
        (
            "a timer that falls due during a look is forgotten",
            "store.next_due_at(now)",
            "store.next_due_at(clock.now())",
        ),
    ),
    *in_file(
        "local/functions_host/durable/episodes.py",
        f"{HOST}/durable/test_episodes.py",
        ("a timer fires at its time", "(timer.fire_at - at) // SECOND * SECOND)", "timer.fire_at - at)"),
    ),
    *in_file(
        "handlers/orchestrations.py",
        f"{HANDLERS}/test_orchestrations.py",
        ("a sleep is set at its end", "max(wait, SECOND) + SECOND", "wait"),
        ("the death of a worker fails an orchestration", "    except Exception:", "    except KeyError:"),
    ),
    *in_file(
        "core/api/cursors.py",
        f"{HANDLERS}/web/test_cursors.py",
        ("a cursor serves a different query", "if found.mark != _mark(query):", "if found.mark == query:"),
    ),
    *in_file(
        "handlers/web/answering.py",
        f"{HANDLERS}/web/test_answering.py",
        ("a request that failed keeps its key", "        keys.release_key(claim)\n", ""),
        (
            "an answer is not stored under its key",
            "    keys.keep_answer(claim, msgspec.json.encode(stored).decode())\n",
            "",
        ),
    ),
    *in_file(
        "handlers/dead_letters.py",
        f"{HANDLERS}/test_dead_letters.py",
        (
            "a keeper that sleeps too long is left asleep",
            "> now + look + CLOCKS_DIFFER:",
            "> now + look + 100 * STALLED_AFTER:",
        ),
        ("a keeper that a person suspended is ended", 'elif state != "Suspended" and (why', "elif (why"),
        (
            "letters that may kill the process are tried side by side",
            'for chunk in chunks if not chunk["alone"]]',
            "for chunk in chunks]",
        ),
        ("a keeper that finds nothing to claim spins", "    if not chunks:\n", "    if chunks:\n"),
        ("the keeper of a closed incarnation runs for ever", "int(own) < stream_id", "int(own) < 0"),
        (
            "a keeper ends for a process that knows only an earlier incarnation",
            "int(own) < stream_id",
            "int(own) != stream_id",
        ),
    ),
    *in_file(
        "handlers/tasks.py",
        f"{HANDLERS}/test_tasks.py",
        (
            "a fault of a slice is not waited for",
            'is_faulty = any("error" in one for one in done)',
            "is_faulty = not done",
        ),
    ),
    *in_file(
        "core/model/clock.py",
        "tests/unit/core/test_settings.py",
        ("an anchor without a zone is taken", "if moment.tzinfo is None:", "if moment is None:"),
    ),
    *in_file(
        "core/settings.py",
        "tests/unit/core/test_settings.py",
        (
            "the hub reader may share the trigger's consumer group",
            "if settings.reader_group.lower() == settings.consumer_group.lower():",
            'if settings.reader_group == "":',
        ),
        ("a ceiling may be below its base", "        if ceiling < base:\n", "        if ceiling < -base:\n"),
        (
            "only the first fault of the settings is reported",
            "raise SettingsRefused(self.faults)",
            "raise SettingsRefused(self.faults[:1])",
        ),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/unit/core/worker/test_work.py",
        (
            "the loss of a partition interrupts a commit",
            "        await asyncio.wait([task])  #",
            "        await task  #",
        ),
        (
            "an infrastructure fault ends the worker",
            "            except InfrastructureFault as fault:\n                facts",
            "            except ValueError as fault:\n                facts",
        ),
        ("a round that can claim nothing spins", "timedelta() if chunks else min(look, LETTER_PAUSE)", "timedelta()"),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/acceptance/worker/test_draining.py::test_a_claim_that_wins_after_the_signal_is_released",
        ("a worker that ends keeps its late claims", "        await _release(owners)\n", ""),
    ),
    *in_file(
        "core/worker/work.py",
        "tests/acceptance/worker/test_draining.py::test_a_start_that_is_cancelled_waits_for_the_thread_at_the_database",
        (
            "a worker closes the database while a thread uses it",
            "        await asyncio.get_running_loop().shutdown_default_executor()\n",
            "        pass\n",
        ),
    ),
    *in_file(
        "core/worker/health.py",
        "tests/unit/core/worker/test_health.py",
        ("a worker without rounds lives", "if self._round_at < since:", "if self._round_at < 0:"),
        ("work that hangs is no fault", "if begun_at < since)", "if begun_at < 0)"),
        ("a worker that hangs answers 200", '(503, "Service Unavailable", fault)', '(200, "OK", fault)'),
    ),
    *in_file(
        "core/worker/ownership.py",
        "tests/unit/core/test_ownership.py",
        ("a claim wins after the release", "if self._is_released:", "if False:"),
        ("the partitions of peers are released", "if one.owner_id == owner_id:", "if one.owner_id:"),
    ),
    *in_file(
        "examples/home_security/transform.py",
        "examples/home_security/tests/test_transform.py",
        ("a switch alerts in a home that is not armed", '== "active" and (home.armed or', '== "active" and (home or'),
        ("carbon monoxide alerts too late", "return reading.ppm >= ALARMING_PPM", "return reading.ppm > ALARMING_PPM"),
    ),
    *in_file(
        "core/remote/hub/events.py",
        "tests/unit/core/remote/hub/test_events.py",
        (
            "an event without an offset is taken",
            "if number is None or not isinstance(offset, bytes) or not stamp:",
            "if number is None or not stamp:",
        ),
    ),
    *in_file(
        "local/event_hubs/readers.py",
        f"{HUB}/test_broker.py",
        (
            "a reader without an epoch reads beside one that has an epoch",
            "(reader.epoch is not None and reader.epoch >= other.epoch)",
            "reader.epoch is None or reader.epoch >= other.epoch",
        ),
        (
            "an equal epoch is refused",
            "reader.epoch >= other.epoch",
            "reader.epoch > other.epoch",
        ),
        (
            "readers without an epoch have no limit",
            "elif len(others) >= _PLAIN_READER_LIMIT:",
            "elif len(others) > 100:",
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
        (
            "times go back within a partition",
            "enqueued_at = max(now, last.enqueued_at if last else self.last_enqueued_at)",
            "enqueued_at = now",
        ),
        (
            "a position after the end is taken",
            "if last is not None and bound > last:",
            "if last is not None and bound > 2**62:",
        ),
        (
            "a staged event can be read",
            "            self._staged.append(stamped)\n",
            "            self._staged.append(stamped)\n            self._events.append(stamped)\n",
        ),
        (
            "a cut event can be read",
            "start = max(sequence, self.first_sequence) - self._base",
            "start = max(sequence, self._base) - self._base",
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
        (
            "a key changes its partition",
            "return self.partitions[str(partition_index(partition_key, len(self.partitions)))]",
            "return next(self._round_robin)",
        ),
    ),
    *in_file(
        "local/event_hubs/partition_key.py",
        f"{HUB}/test_partition_key.py",
        (
            "a key has a different hash than in Azure",
            "b = ((b ^ a) - _rotate(a, 25)) & _MASK",
            "b = ((b ^ a) - _rotate(a, 24)) & _MASK",
        ),
    ),
    *in_file(
        "local/functions_host/partition_pump.py",
        f"{HOST}/test_partition_pump.py",
        (
            "a failed batch does not move the host's checkpoint",
            "        if ending is Ending.ABANDONED:\n",
            "        if ending is not Ending.SUCCEEDED:\n",
        ),
        (
            "an abandoned batch moves the host's checkpoint",
            "            self.stop()  # to continue would checkpoint past this batch\n",
            "            self.stop()\n            self._checkpoint.advance(batch[-1].position)\n",
        ),
        (
            "the host writes a checkpoint for every batch",
            "        if self._unwritten >= self._frequency:\n",
            "        if self._unwritten:\n",
        ),
        (
            "a batch that ends after a stop moves the host's checkpoint",
            "        if not self._is_stopping:\n",
            "        if ending is not Ending.ABANDONED:\n",
        ),
        ("a skipped batch is delivered", "        if self._skips:\n", "        if self._skips > 1_000:\n"),
        (
            "a batch that is out of order is delivered",
            "if batch and not _rises(batch):",
            "if not batch and _rises(batch):",
        ),
    ),
    *in_file(
        "local/functions_host/sdk_stream.py",
        f"{HOST}/test_sdk_stream.py",
        (
            "the events of a broken link come among those of the next",
            "                tasks.add(self._taking)\n",
            "                pass\n",
        ),
    ),
    *in_file(
        "local/functions_host/json_net.py",
        f"{HOST}/test_json_net.py {HOST}/test_event_hub_inputs.py",
        (
            "an annotation that .NET has no value for ends the pump",
            "    except NotConverted:\n        return b64encode",
            "    except KeyError:\n        return b64encode",
        ),
    ),
    *in_file(
        "local/functions_host/retry_policy.py",
        f"{HOST}/test_retry_policy.py {HOST}/test_invoker.py",
        ("a retry without end ends", "return self.max_retry_count == -1 or retries_done", "return retries_done"),
    ),
)
