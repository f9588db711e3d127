"""Several keepers, persons and batches on one partition: no letter is held twice, and one of two always wins."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from core.errors import CheckpointConflict
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import SequenceNumber
from core.model.letters import LetterPolicy, LetterPosition
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, batch, claim, events, keep_letters, partition, stamps
from tests.fakes.kept import Engine
from tests.fakes.moving import discard
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store
from tests.patience import allowed

LETTERS = 120


def keeper(store: Store, seed: int) -> Keeper:
    policy = LetterPolicy(chunk=7, fan_out=3)
    return Keeper(STREAM, store, PLAIN, lambda place, number: None, stamps(seed), policy)


def test_threads_that_claim_at_once_never_hold_the_same_letter(make_store: Callable[[], Store]) -> None:
    stores = [make_store() for _ in range(4)]
    keep_letters(stores[0], dict.fromkeys(range(LETTERS), "a"))

    def claim_all(number: int) -> list[int]:
        got: list[int] = []
        turns = count()  # a claim that is sent again gets the same letters
        while some := stores[number].claim_letters(claim(f"claim-{number}-{next(turns)}", most=5)):
            got += [one.position.sequence_number for one in some]
        return got

    with ThreadPoolExecutor(4) as pool:
        got = [number for some in pool.map(claim_all, range(4)) for number in some]
    assert sorted(got) == list(range(LETTERS))


def test_keepers_that_race_each_other_a_person_and_a_batch_settle_every_letter_once(
    make_store: Callable[[], Store], engine: Engine
) -> None:
    keep_letters(make_store(), dict.fromkeys(range(LETTERS), "double home-1"))

    def keep(number: int) -> None:
        own = keeper(make_store(), number)
        while chunks := claim_due(own):
            for chunk in chunks:
                retry_chunk(chunk, own, f"keeper-{number}")

    def give_up(number: int) -> list[LetterPosition]:
        own = keeper(make_store(), number)
        some = [LetterPosition(partition().partition_id, SequenceNumber(at)) for at in range(0, LETTERS, 3)]
        return [moved for one in some for moved in discard([one], own, "somebody", "because")]

    def ingest(number: int) -> None:
        store, own = make_store(), stamps(number)
        for at in range(10):
            given = batch(events(LETTERS + 5 * at, LETTERS + 5 * at + 4, "reading home-1"))
            while True:
                try:
                    ingest_batch(given, Ingestion(store, PLAIN, own))
                    break
                except CheckpointConflict:
                    continue

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(keep, 1), pool.submit(keep, 2), pool.submit(ingest, 4)]
        given_up = pool.submit(give_up, 3)
        for done in working:
            done.result(timeout=allowed(60))
        discarded = {position.sequence_number for position in given_up.result(timeout=allowed(60))}
    rows = [kept.sequence_number for kept in engine.rows(SensorReading) if kept.sequence_number < LETTERS]
    assert rows == [number for number in range(LETTERS) if number not in discarded]
    assert len(engine.attempts()) == LETTERS
    for kept in engine.letters():
        assert kept.status == ("discarded" if kept.sequence_number in discarded else "resolved")
    (books,) = make_store().read_ledgers()
    assert (books.balanced, books.letters) == (True, LETTERS)
    numbers = [kept.commit_number for kept in [*engine.ledger(), *engine.retries()]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
