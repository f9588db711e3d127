"""Every script of every verb: both engines can send it, whatever its values."""

from core.errors import DataRefused
from core.store.sqlserver.batch import run_batch
from tests.offenders import holds_for
from tests.sql.verbs import bind, every_sent, makers, sent_by_verbs, unsent

VERBS = sent_by_verbs()


def test_every_script_that_the_store_makes_is_sent_here() -> None:
    assert unsent() == []


def test_a_function_that_makes_a_script_is_found_wherever_it_stands() -> None:
    source = "class Verbs:\n  def run(self):\n    Script('a', ())\n\ndef made():\n  return replace(Script('a', ()))\n"
    assert set(makers(source)) == {"Verbs.run", "made"}


@holds_for(VERBS)
def test_a_script_whose_values_all_differ_is_one_batch_of_sql_server(name: str) -> None:
    """One parameter that two steps give different values is a fault of the script."""
    try:
        run_batch(VERBS[name].script, VERBS[name].is_rehearsed)
    except (ValueError, KeyError, DataRefused) as fault:
        raise AssertionError(repr(fault)) from fault


@holds_for(every_sent())
def test_a_script_gives_sqlite_every_value_that_its_steps_name(name: str) -> None:
    bind(every_sent()[name].script)


def test_only_a_dry_run_of_a_replay_is_made_and_rolled_back() -> None:
    """A purge counts its rows: to delete them, roll back and delete them again would log each three times."""
    rehearsed = {name.partition(" ")[0] for name, sent in VERBS.items() if sent.is_rehearsed}
    assert rehearsed == {"Replays.rehearse_replay"}
