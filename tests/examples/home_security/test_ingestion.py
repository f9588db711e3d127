"""A committed batch of home_security: later events see its registrations, and its bad bodies are letters."""

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import DeadLetter
from core.model.events import Event
from core.model.rows import Row
from core.transforms.loading import load_transform
from examples.home_security.tests.test_transform import BAD, GAS, MOTION, REGISTRATION, body
from examples.home_security.transform import HomeAlert, SensorReading
from tests.fakes.builders import batch, event, stamps
from tests.fakes.memory_store import MemoryStore

HOME_SECURITY = load_transform("examples.home_security")
GOOD_BEFORE, GOOD_AFTER = body(REGISTRATION), body(MOTION, state="active")


def ingest(*bodies: bytes) -> MemoryStore:
    store = MemoryStore()
    given = [event(number, each) for number, each in enumerate(bodies)]
    ingest_batch(batch(given), Ingestion(store, HOME_SECURITY, stamps()))
    return store


def rows(store: MemoryStore, row_class: type) -> list[Row]:
    return [kept.row for kept in store.rows(row_class)]


def test_a_registration_is_seen_by_later_readings_of_its_batch_and_not_by_earlier_ones() -> None:
    store = ingest(body(MOTION), body(REGISTRATION), body(MOTION))
    assert [kept.sequence_number for kept in store.rows(SensorReading)] == [2]
    (letter,) = store.letters()
    assert (letter.sequence_number, letter.error_class, letter.status) == (0, "reference", "waiting")
    assert letter.error == "home home-1 is not registered"


def test_disarming_in_the_middle_of_a_batch_silences_what_follows() -> None:
    active = body(MOTION, state="active")
    store = ingest(body(REGISTRATION), active, body(REGISTRATION, armed=False), active)
    assert [kept.sequence_number for kept in store.rows(HomeAlert)] == [1]


def test_identifiers_may_be_as_long_as_their_columns() -> None:
    store = ingest(body(REGISTRATION, home_id="h" * 32), body(MOTION, home_id="h" * 32, sensor_id="s" * 64))
    assert len(rows(store, SensorReading)) == 1


def test_all_bad_bodies_of_one_batch_are_letters_and_the_rest_commits() -> None:
    bad = [given for given, _ in BAD.values()]
    store = ingest(GOOD_BEFORE, *bad, GOOD_AFTER)
    letters = store.letters()
    assert [(letter.sequence_number, letter.body) for letter in letters] == list(enumerate(bad, 1))
    classes = {(letter.error_class, letter.status, letter.error_type) for letter in letters}
    assert classes == {("poison", "exhausted", "core.errors.PoisonEvent")}
    (kept,) = store.ledger()
    assert (kept.written, kept.dead_lettered) == (2, len(BAD))
    assert [kept.sequence_number for kept in store.rows(HomeAlert)] == [len(BAD) + 1]
    assert [books.balanced for books in store.read_ledgers()] == [True]


def letters_of(*given: Event) -> list[DeadLetter]:
    (commit,) = ingest_batch(batch(given), Ingestion(MemoryStore(), HOME_SECURITY, stamps())).commits
    return list(commit.settled.letters)


def test_letters_of_one_cause_share_a_fingerprint_and_others_do_not() -> None:
    same = letters_of(event(0, body(GAS, ppm=-1)), event(1, body(GAS, ppm=-2)))
    assert len({letter.fingerprint for letter in same}) == 1
    other = letters_of(event(0, b""), event(1, body(GAS, colour=1)), event(2, body(MOTION)))
    assert len({letter.fingerprint for letter in [*same, *other]}) == 4
