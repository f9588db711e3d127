"""local/demo.py: what is refused before anything is started."""

import pytest

from local.demo import main


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--transform", "flights", "must be home_security or flight_info"),
        ("--transform", "other.module", "must be home_security or flight_info"),
        ("--events", "0", "must be a whole number from 1"),
        ("--workers", "-1", "must be a whole number from 1"),
        ("--kill", "-1", "must be a whole number from 1"),
        ("--rate", "slow", "must be a number above 0, or full"),
        ("--chaos", "often", "ignored explicit argument 'often'"),
    ],
)
def test_what_a_demo_cannot_do_is_one_clear_error(
    option: str, value: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([f"{option}={value}"])
    assert why in capsys.readouterr().err


def test_chaos_without_the_functions_host_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--chaos", "--workers", "2"])
    assert "argument --chaos: it needs the functions host" in capsys.readouterr().err


def test_help_names_chaos(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--chaos" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--workers=2"], "it needs the functions host"),
        (["--transform=flight_info"], "only home_security has readings"),
    ],
)
def test_what_cannot_be_aggregated_is_one_clear_error(
    options: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--aggregate", *options])
    assert why in capsys.readouterr().err


def test_without_java_a_demo_that_aggregates_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["--aggregate"])
    assert ended.value.code == 2
    assert "Java is missing: apt-get install openjdk-17-jre-headless" in capsys.readouterr().err
