from local.functions_host.supervisor import APART, Deaths

HALF_AN_HOUR = APART.total_seconds()


def ends(*times: float) -> list[bool]:
    deaths = Deaths()
    return [deaths.add(at) for at in times]


def test_deaths_count_anew_after_half_an_hour_without_one() -> None:
    assert ends(0, 1, 1 + HALF_AN_HOUR, 2 + HALF_AN_HOUR, 3 + HALF_AN_HOUR) == [False] * 4 + [True]
    assert ends(0, HALF_AN_HOUR - 1, 2 * HALF_AN_HOUR - 2) == [False, False, True]
