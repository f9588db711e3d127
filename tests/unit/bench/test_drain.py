"""bench/drain.py counts what was published and accounted for, and names the reader's share of it."""

from bench.drain import Flood, Look, figures, longest_pause
from bench.figures import Figure


def looks(*rows: tuple[float, int, int]) -> list[Look]:
    return [Look(*row) for row in rows]


FLOOD = looks((0, 100, 100), (1, 100, 3_100), (2, 500, 4_100), (3, 900, 4_500))
REST = looks((4, 1_900, 4_500), (5, 4_500, 4_500))
SILENCE = looks((9, 4_500, 8_500), (10, 4_500, 8_500), (11, 5_000, 8_500), (12, 6_000, 8_500), (13, 8_500, 8_500))


def measured(flood: list[Look] = FLOOD, silence: list[Look] = SILENCE) -> dict[str, Figure]:
    found = figures(Flood([*flood, *REST], flood[-1], {"emulator": 0.01}), silence, 20_000.0)
    return {figure.name.removeprefix("drain, "): figure for figure in found}


def test_the_share_compares_the_rate_of_the_flood_alone_with_that_of_the_silence() -> None:
    share = measured()["accounted/s while publishing, as a share"]
    assert (share.value, share.met) == (0.4, False), "400 a second of 1,000"
    assert share.note == "400 /s, and 1,000 /s when the publisher is silent"


def test_a_starved_reader_misses_the_target_and_a_fed_one_meets_it() -> None:
    starved = looks((0, 100, 100), (1, 100, 3_100), (2, 130, 4_100), (3, 160, 4_500))
    fed = looks((0, 100, 100), (1, 900, 3_100), (2, 1_700, 4_100), (3, 2_500, 4_500))
    name = "accounted/s while publishing, as a share"
    assert [measured(flood)[name].met for flood in (starved, fed)] == [False, True]


def test_the_lag_is_the_largest_of_all_looks() -> None:
    lag = measured()["largest lag as a share of its bound"]
    assert lag.note.startswith("3,600 events")
    assert lag.met
    far = looks((0, 100, 100), (1, 100, 900_000), (2, 200, 900_000))
    assert measured(far)["largest lag as a share of its bound"].met is False


def test_a_pause_is_a_time_in_which_nothing_moved_although_events_were_published() -> None:
    assert longest_pause(looks((0, 5, 5), (10, 5, 5), (11, 5, 8), (14, 5, 8), (15, 8, 8))) == 4.0
    assert longest_pause(looks((0, 0, 9), (1, 5, 9), (2, 9, 9), (60, 9, 9))) == 1.0


def test_the_rest_of_the_drain_begins_with_the_end_of_the_feed() -> None:
    rest = measured()["time until drained after the last event"]
    assert (rest.value, rest.note) == (2, "3,600 events")
