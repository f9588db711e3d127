"""Attacks on the edges of the API: newlines in paths, forged cursors, one key in many threads, large bodies,
and foreign hosts."""

import gzip
import http.client
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from core.api.problems import SAFE
from handlers.web.requests import LARGEST_BODY
from tests.acceptance.api.conftest import fill
from tests.acceptance.api.hostile import BOUND, ENDS, JOB, SHAPES, WRONG, forged, open_replay
from tests.acceptance.api.routes import VALUES, filled, methods_by_path, paths, served_by_the_app
from tests.acceptance.api.served import Reply, Served, segment
from tests.acceptance.api.test_bad_input import BEFORE_READING, LINKS, is_problem, names
from tests.patience import allowed

THREADS = 50
OF_THE_HOST = 4 * LARGEST_BODY
DISCARD = {"move": "discard", "expected_count": 6, "reason": "known poison", "filter": {"fingerprint": "aaaa"}}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A host whose store the tests change, with a limit of bodies above the API's, as Azure's host has one."""
    made = Served(tmp_path_factory.mktemp("attacked"), FUNCTIONS_REQUEST_BODY_SIZE_LIMIT=str(OF_THE_HOST))
    fill(made)
    open_replay(made.store)
    yield made
    made.close()


def test_a_newline_in_any_value_of_a_path_is_refused(served: Served) -> None:
    for (template, method), _ in served_by_the_app().items():
        for name in re.findall(r"\{(\w+)\}", template):
            for end in ENDS:
                for text in (VALUES[name] + end, end + VALUES[name], end):
                    path = filled(template.replace(f"{{{name}}}", segment(text)))
                    answer = (
                        served.get(path) if method == "GET" else served.post(path, {"reason": "because"}, method=method)
                    )
                    is_problem(answer, 400, 404, *BEFORE_READING.get(template, ()), case=(path, text))


def test_a_newline_after_an_address_is_another_address(served: Served) -> None:
    for path in paths("GET"):
        if "/" not in path:
            is_problem(served.get(f"{path}%0A"), 404, case=path)


@pytest.mark.parametrize("path", BOUND)
def test_a_forged_cursor_of_any_type_is_refused(own: Served, path: str) -> None:
    for key in (*WRONG[path], *SHAPES):
        names(own.get(path, cursor=forged(BOUND[path], key)), "cursor", (path, key))


def test_of_many_threads_with_one_id_one_opens_the_redrive_and_each_letter_moves_once(own: Served) -> None:
    task_id = str(uuid4())
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda _: own.order("redrive", DISCARD, task_id), range(THREADS)))
    # 409: its letters had been moved when the request was read, and the first one was not stored yet when it came
    assert {answer.status for answer in answers} <= {200, 201, 409}
    assert {answer.json["task_id"] for answer in answers if answer.status < 300} == {task_id}
    assert own.order("redrive", DISCARD, task_id).json["moved"] == 6
    assert len(own.contents()["dead_letter_attempt"]) == 6


def test_of_many_threads_that_request_a_replay_under_one_id_one_opens_it(own: Served) -> None:
    task_id, body, before = str(uuid4()), {"reason": "look first", "partitions": ["1"]}, len(own.contents()["task"])
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda _: own.order("replay", body, task_id), range(THREADS)))
    assert {answer.status for answer in answers} == {200, 201}
    assert {answer.json["task_id"] for answer in answers} == {task_id}
    assert len(own.contents()["task"]) == before + 1


def test_a_body_beyond_the_limit_is_a_problem_and_beyond_that_of_the_host_an_empty_500(own: Served) -> None:
    sent = {"Content-Type": "application/json"}
    for path in paths("POST"):
        refused = (409,) if path == LINKS else (413,)  # without a secret it makes no link
        is_problem(own.request("POST", f"/api/{path}", b" " * (LARGEST_BODY + 1), sent), *refused, case=path)
        answer = own.request("POST", f"/api/{path}", b" " * (OF_THE_HOST + 1), sent)
        assert (answer.status, answer.body) == (500, b""), path
    is_problem(own.request("PUT", f"/api/tasks/{JOB}", b" " * LARGEST_BODY, sent), 400)


def test_a_length_that_is_only_claimed_fails_without_its_body(own: Served) -> None:
    place = urlsplit(own.base_url)
    with socket.create_connection((place.hostname, place.port), timeout=allowed(10)) as peer:
        peer.sendall(b"POST /api/aggregations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n")
        assert peer.recv(12) == b"HTTP/1.1 500"


def test_a_body_in_chunks_has_no_length_and_arrives_empty(own: Served) -> None:
    connection = http.client.HTTPConnection(urlsplit(own.base_url).netloc, timeout=allowed(10))
    sent = {"Content-Type": "application/json"}
    connection.request("POST", "/api/aggregations", iter([b" " * 1_000] * 100), sent, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 400
    connection.close()


def test_a_foreign_host_or_origin_reaches_no_route(own: Served) -> None:
    before = own.contents()
    sent = {"Content-Type": "application/json"}
    refusals = {"Host": ("evil.example", 421), "Origin": ("https://evil.example", 403)}
    for path, methods in methods_by_path().items():
        for method in methods:
            for name, (foreign, status) in refusals.items():
                answer = own.request(method, f"/api/{path}", b"{}", {**sent, name: foreign})
                assert (answer.status, answer.json["status"]) == (status, status), (method, path, name)
    assert own.contents() == before


def test_every_address_that_takes_get_takes_head_with_the_same_headers_and_no_body(served: Served) -> None:
    for path in paths("GET"):
        read, head = served.get(path), served.request("HEAD", f"/api/{path}")
        assert (head.status, head.body) == (read.status, b""), path
        compared = [*(name.lower() for name in SAFE), "content-type", "etag"]
        assert [head.headers.get(name) for name in compared] == [read.headers.get(name) for name in compared], path


def test_every_long_answer_is_shorter_on_the_wire_for_a_client_that_takes_gzip(served: Served) -> None:
    compressed = 0
    for path in paths("GET"):
        plain, packed = served.get(path), served.get(path, headers={"Accept-Encoding": "gzip"})
        if packed.headers.get("content-encoding") == "gzip":
            compressed += 1
            assert len(packed.body) < len(plain.body), path
            assert gzip.decompress(packed.body).startswith(plain.body[:20]), path
        else:
            assert len(plain.body) <= 1_100 or plain.status >= 400, path
    assert compressed > 5


def test_an_empty_body_is_shown_in_every_form(own: Served) -> None:
    own.sqlite.sql("UPDATE event_hub_dead_letter SET body = x'' WHERE sequence_number = 1 AND partition_id = '0'")
    shown: dict[str, Reply] = {
        form: own.get("revealed/dead-letters/0/1", body=form) for form in ("text", "json", "hex")
    }
    assert {one.status for one in shown.values()} == {200}
    found = {form: one.json["body"] for form, one in shown.items()}
    assert (found["text"]["shown"], found["hex"]["shown"], found["json"]["shown"]) == ("", "", None)
    assert found["json"]["fault"].startswith("not JSON")
