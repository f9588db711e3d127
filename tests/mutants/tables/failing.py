"""Mutants of the ways in which the local host fails as Azure's does."""

from tests.mutants.mutant import in_file

HOST, WHOLE = "tests/unit/local/functions_host", "tests/acceptance/functions_host"

MUTANTS = (
    *in_file(
        "local/functions_host/deliveries.py",
        f"{HOST}/test_deliveries.py",
        ("a map is a property of .NET", "max(_of_value(encoded), _alone(encoded))", "_of_value(encoded)"),
        ("a short decimal in a list is delivered", "_of_value(one, depth + 1) for", "Delivery.DELIVERED for"),
        ("a message of no use to the decoder stops the reader", "found = max(found, D", "found = min(found, D"),
        (
            "an AMQP value is delivered",
            "if encoded == NULL else Delivery.BINDING_FAILS",
            "if encoded else Delivery.DROPPED",
        ),
    ),
    *in_file(
        "local/functions_host/marks.py",
        f"{HOST}/test_marks.py",
        ("an annotation that the SDK leaves out is not seen", " or payload[5] != 2 * len(found)", ""),
        (
            "a key is a text because the SDK reads bytes",
            "_TEXT_KEY in bytes(payload[:_LOOKED_AT])",
            "bool(found[_KEY])",
        ),
    ),
    *in_file(
        "local/functions_host/sdk_stream.py",
        f"{HOST}/test_sdk_stream.py",
        ("the good neighbours of a dropped event arrive", "LOST_TOGETHER = 217", "LOST_TOGETHER = 1"),
        (
            "events before the one that stops the reader arrive",
            "            return\n        if arriving",
            "        if arriving",
        ),
    ),
    *in_file(
        "local/functions_host/partition_pump.py",
        f"{HOST}/test_partition_pump.py",
        (
            "a stopped reader forgets the store's checkpoint",
            "            self._checkpoint.read()\n",
            "            pass\n",
        ),
        (
            "a lifted checkpoint is overwritten with an older one",
            "        self.position = self._read()\n        self._unwritten = 0\n",
            '        self.position = self._read()\n        self._unwritten = getattr(self, "_unwritten", 0)\n',
        ),
        ("every batch of a partition without checkpoint comes at once", "        self._is_first = False\n", ""),
    ),
    *in_file(
        "local/functions_host/invoker.py",
        f"{HOST}/test_invoker.py",
        (
            "inputs that cannot be bound reach the function",
            "if invocation.fault is not None:",
            "if invocation.fault == 0:",
        ),
    ),
    *in_file(
        "local/functions_host/like_azure.py",
        f"{HOST}/test_like_azure.py",
        ("deaths of different days end the host", "at - self._last >= APART", "at - self._last >= 9 * APART"),
    ),
    *in_file(
        "local/functions_host/blob_service.py",
        f"{WHOLE}/test_blob_service.py",
        (
            "a checkpoint is written over one that was not read",
            ", _tag(found)):",
            ', request.headers.get("If-Match")):',
        ),
        ("a checkpoint is created over one that exists", 'get("If-None-Match") == "*"', 'get("If-None-Match") == "?"'),
    ),
    *in_file(
        "local/feed/undeliverable.py",
        "tests/unit/local/feed/test_undeliverable.py",
        ("a message has no partition key", 'head = b"" if key is None else', 'head = b"" if key else'),
    ),
)
