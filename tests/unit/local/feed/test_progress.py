"""local/feed/progress.py"""

import io
import json

from local.feed.progress import Progress


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def lines(out: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_comes_every_other_second_with_the_rate_since_the_one_before() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)
    for published in range(0, 4_001, 100):
        clock.now = 10 + published / 1_000
        progress(published)
    assert lines(out) == [{"published": n, "events_per_second": 1_000} for n in (2_000, 4_000)]


def test_the_last_line_is_about_the_whole_time() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, clock)
    clock.now = 15.0
    progress.end(1_000, doubtful_sends=0)
    assert lines(out) == [{"published": 1_000, "events_per_second": 200, "seconds": 5.0, "doubtful_sends": 0}]
