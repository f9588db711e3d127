"""Mutants of the edges of the API: forms of values, headers, limits, and unforeseen faults."""

from tests.mutants.mutant import in_file

WEB, API = "tests/unit/handlers/web", "tests/acceptance/api"
EDGES, REPLAYS = f"{WEB}/test_edges.py", "tests/unit/handlers/operations/test_replays.py"

MUTANTS = (
    *in_file(
        "core/api/operation.py",
        f"{WEB}/test_patterns.py {EDGES}",
        ("a number may end in a newline", r'r"^[0-9]{1,19}\Z"', 'r"^[0-9]{1,19}$"'),
        ("a reason may be blank", r'VISIBLE = r"\S', r'VISIBLE = r"[\s\S]'),
    ),
    *in_file(
        "handlers/web/openapi.py",
        f"{WEB}/test_patterns.py",
        ("the description has patterns of Python", "        components = _in_ecma(components)\n", ""),
    ),
    *in_file(
        "core/api/cursors.py",
        f"{WEB}/test_cursors.py",
        ("a cursor may name a number of any size", "msgspec.Meta(ge=0, le=2**63 - 1)", "msgspec.Meta(title='any')"),
        (
            "a cursor may name a time that UTC does not have",
            "if any(one.utcoffset() != timedelta() for",
            "if any(one.utcoffset() is None for",
        ),
    ),
    *in_file(
        "core/letters/store/listing.py",
        "tests/contract/operator/test_listing.py",
        ("an empty body cannot be read", 'bytes(found[0][0] or b"")', "bytes(found[0][0])"),
    ),
    *in_file(
        "handlers/web/slashes.py",
        f"{WEB}/test_slashes.py",
        ("a slash that the host left encoded is encoded again", '_KEPT_SLASH.sub("%2", quote(last', '("" + quote(last'),
    ),
    *in_file(
        "handlers/web/tags.py",
        EDGES,
        ("a tag in a list is not known", "r'(?:W/)?(\"[!#-~]*\")'", "r'^(?:W/)?(\"[!#-~]*\")$'"),
        ("a star is not a tag", 'if_none_match.strip() == "*" or ', ""),
    ),
    *in_file(
        "handlers/web/requests.py",
        EDGES,
        (
            "a quoted key is a different key",
            r"""return re.sub(r"\\(.)", r"\1", key[1:-1]) if key.startswith('"') else key""",
            "return key",
        ),
        ("the last of two values of one name is taken", "        if count > 1:\n", "        if count > 2:\n"),
    ),
    *in_file(
        "handlers/web/answering.py",
        f"{EDGES} {REPLAYS}",
        ("callers share their keys", "KeyClaim(key_of_caller(call.who, key), ", "KeyClaim(key, "),
        ("refusals without a key fill the log", "        if route.level.needs_key:\n", "        if route.level:\n"),
        (
            "an unforeseen fault reaches the host",
            "        return answer_unexpected(route, invocation_id)\n",
            "        raise\n",
        ),
    ),
    *in_file(
        "core/api/problems.py",
        f"{EDGES} tests/repo/test_api_page.py",
        ("a browser may use http", '    "Strict-Transport-Security": "max-age=31536000",\n', ""),
        ("a text of any length is quoted", "return shown if len(shown) <= SHOWN_TEXT else", "return text if text else"),
        ("a newline of a caller is quoted", 'one if one.isprintable() else "\\ufffd"', "one"),
        (
            "a count that differs is a failed precondition",
            '"The count differs from the expected one", 409)',
            '"The count differs from the expected one", 412)',
        ),
    ),
    *in_file(
        "handlers/operations/health.py",
        "tests/unit/handlers/operations/test_health.py",
        ("books that do not balance are healthy", "healthy=books.balanced and not stops", "healthy=not stops"),
        ("each request for the health reads the books", "fresh=5.0, limit=5.0", "fresh=0.0, limit=0.0"),
    ),
    *in_file(
        "core/api/route.py",
        "tests/unit/handlers/test_function_app.py",
        ("no route takes HEAD", 'return (self.method, "HEAD") if', "return (self.method,) if"),
    ),
    *in_file(
        "handlers/web/responses.py",
        f"{API}/test_description.py::test_every_operation_describes_the_refusals_and_faults_of_all",
        ("no operation says that it needs a key", "    if route.level.needs_key:\n", "    if not route.level:\n"),
    ),
    *in_file(
        "sql/queries/event_stream.sql",
        "tests/contract/test_incarnations.py",
        (
            "a replay of numbers of the former hub is opened",
            "stream_id AND closed_at IS NULL;\n-- sqlserver:",
            "stream_id;\n-- sqlserver:",
        ),
    ),
    *in_file(
        "sql/queries/event_stream.sql",
        "tests/sql/test_house_rules.py",
        ("simultaneous replays pass the limit on the server", " AS e WITH (UPDLOCK)", " AS e"),
    ),
    *in_file(
        "sql/queries/partition_anchor.sql",
        "tests/sql/test_house_rules.py",
        ("a partition of a closed stream gets an anchor on the server", " AS e WITH (REPEATABLEREAD)", " AS e"),
    ),
    *in_file(
        "sql/queries/partition_stop.sql",
        "tests/sql/test_lock_order.py tests/sql/test_house_rules.py",
        ("a new stop and the next incarnation wait for each other", " AS e WITH (REPEATABLEREAD)", " AS e"),
        (
            "a stop that a different process inserts first is not counted",
            "that row counts this\n    UPDATE hubledger.partition_stop",
            "that row counts this\n    UPDATE hubledger.partition_anchor",
        ),
    ),
    *in_file(
        "core/tasks/store.py",
        "tests/sql/test_house_rules.py",
        (
            "an audit is opened while a purge deletes its ledger rows",
            "            lock_step(request.order.stream_id, StreamClosed),\n",
            "",
        ),
    ),
    *in_file(
        "core/ledger/store/purge_scripts.py",
        "tests/sql/test_house_rules.py",
        (
            "staged events are purged while a replay of them is opened",
            "(lock_step(stream_id, ending.conflict), *own)",
            "own",
        ),
    ),
    *in_file(
        "core/tasks/store.py",
        "tests/contract/test_replay_jobs.py",
        (
            "a dry run is refused for an overlap",
            "int(request.holds_numbers and not request.is_dry_run)",
            "int(request.holds_numbers)",
        ),
    ),
    *in_file(
        "core/remote/hub/reader.py",
        "tests/acceptance/event_hubs/test_offsets.py",
        (
            "a refused offset looks like an unreachable hub",
            "if isinstance(place, str) and any(",
            "if not place and any(",
        ),
    ),
    *in_file(
        "core/replay/ranges.py",
        "tests/unit/core/replay/test_ranges.py",
        (
            "an offset that is refused names no field",
            'raise ReplayRefused(f"{field}.offset", str(refusal)) from refusal',
            "raise",
        ),
    ),
    *in_file(
        "core/aggregation/addresses.py",
        "tests/unit/core/aggregation/test_addresses.py",
        (
            "a token goes to a host that begins like the service",
            '(name.startswith(".") and host.endswith(name))',
            '(name.startswith(".") and name in host)',
        ),
        (
            "a token goes over http",
            '(parts.scheme == "http" and _is_here(parts.hostname))',
            'parts.scheme == "http"',
        ),
    ),
    *in_file(
        "handlers/web/bodies.py",
        "tests/unit/handlers/web/test_requests.py::TestBodies",
        ("a body with NaN is shown as JSON", ", parse_constant=_refuse", ""),
        ("deep nesting makes an answer a thousand times as long", "min(depth, MOST_INDENTED)", "depth"),
    ),
    *in_file(
        "local/functions_host/settings.py",
        "tests/acceptance/functions_host/test_host.py",
        ("the limit of bodies is not read", "largest_body or LARGEST_BODY, ", "LARGEST_BODY, "),
    ),
    *in_file(
        "local/functions_host/callers.py",
        f"{API}/test_attacks.py::test_a_length_that_is_only_claimed_fails_without_its_body",
        (
            "the host waits for a body that is too large",
            "if (request.content_length or 0) > request.client_max_size:",
            "if (request.content_length or 0) < 0:",
        ),
    ),
)
