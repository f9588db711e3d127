"""What must hold when a world of letters has come to rest."""

from collections import Counter, defaultdict

from core.letters.plan import CRASHED, GONE
from core.transforms.home_security import Home, HomeAlert, SensorReading
from tests.fakes.kept import Engine, KeptAttempt, KeptLetter
from tests.fakes.store import Store
from tests.simulation.letter_world import FOR_EVER, LetterWorld

NEVER = {"poison", "bug", "huge"}  # no retry makes rows of these


def assert_at_rest(world: LetterWorld, engine: Engine, store: Store) -> None:
    """Every letter is settled once, with its rows once, and ledger and attempts say the same."""
    assert_books(world, store)
    attempts: dict[tuple[str, int], list[KeptAttempt]] = defaultdict(list)
    for each in engine.attempts():
        attempts[each.partition_id, each.sequence_number].append(each)
    for letter in engine.letters():
        made = attempts.pop((letter.partition_id, letter.sequence_number), [])
        assert_letter(world, letter)
        assert_attempts(letter, made)
    assert not attempts, "attempts of no letter"
    assert_told(world, engine)
    assert_rows(world, engine)
    assert_retries(engine, store)


def assert_books(world: LetterWorld, store: Store) -> None:
    books = store.read_ledgers()
    assert [one.accounted for one in books] == [len(log) for log in world.logs.values()]
    assert all(one.balanced for one in books)


def assert_letter(world: LetterWorld, letter: KeptLetter) -> None:
    verb, *words = _words(world, letter)
    assert letter.status in ("resolved", "exhausted", "discarded"), letter
    assert letter.due_at is None
    assert letter.settled_at is not None or verb == "poison", letter  # a batch sets poison aside at once
    if verb in NEVER or (verb == "kill" and int(words[0]) == FOR_EVER):
        assert letter.status != "resolved", letter
    if world.calm and letter.error_class == "crash":
        assert verb == "kill", letter  # nobody else dies of it


def assert_attempts(letter: KeptLetter, made: list[KeptAttempt]) -> None:
    """Numbered from 1, the last one says what the letter is, and what the letter counts are its tries."""
    assert [each.attempt for each in made] == list(range(1, len(made) + 1)), letter
    assert len({each.touched_by for each in made}) == len(made), letter
    if made:
        assert made[-1].status == letter.status, letter
    ends = [at for at, each in enumerate(made) if each.status in ("resolved", "discarded")]
    assert ends in ([], [len(made) - 1]), letter
    asked = max((at for at, each in enumerate(made) if each.kind == "requeue"), default=None)
    tries = made if asked is None else made[asked:]
    tried = sum(each.kind == "retry" and each.why not in (GONE, CRASHED) for each in tries)
    assert letter.attempts == tried + (asked is None), letter


def assert_told(world: LetterWorld, engine: Engine) -> None:
    discarded = {(kept.partition_id, kept.sequence_number) for kept in engine.letters() if kept.status == "discarded"}
    assert {(one.partition_id, one.sequence_number) for one in world.told} <= discarded


def assert_rows(world: LetterWorld, engine: Engine) -> None:
    """Events that were written have their rows once; what is not resolved has none; the newest home stands."""
    status = {(kept.partition_id, kept.sequence_number): kept.status for kept in engine.letters()}
    rows = Counter(
        (kept.partition_id, kept.sequence_number)
        for row_class in (SensorReading, HomeAlert)
        for kept in engine.rows(row_class)
    )
    newest: dict[str, tuple[str, int]] = {}
    for place, log in world.logs.items():
        for number, event in enumerate(log):
            verb, *words = event.body.decode().split()
            written = status.get((place, number), "resolved") == "resolved"
            expected = int(written and verb in ("reading", "look", "fix", "kill"))
            assert rows.pop((place, number), 0) == expected, (place, number, verb)
            if written and verb in ("home", "fixhome"):
                newest[words[0]] = (place, number)
    assert not rows, "rows of no event"
    standing = {kept.row.home_id: (kept.partition_id, kept.sequence_number) for kept in engine.rows(Home)}  # type: ignore[attr-defined]
    assert standing == newest


def assert_retries(engine: Engine, store: Store) -> None:
    """Commits count on without a hole; each retry's counts are its attempts."""
    made: dict[tuple[str, int], list[KeptAttempt]] = defaultdict(list)
    for each in engine.attempts():
        if each.commit_number is not None:
            made[each.partition_id, each.commit_number].append(each)
    for kept in engine.retries():
        own = made.pop((kept.partition_id, kept.commit_number))
        assert {each.done_by for each in own} == {kept.invocation_id}
        assert (kept.first, kept.last) == (own[0].sequence_number, own[-1].sequence_number)
        assert kept.written + kept.filtered == sum(each.status == "resolved" for each in own)
        assert kept.dead_lettered == sum(each.status != "resolved" for each in own)
    assert not made, "attempts of a commit that is not in the ledger"
    for books in store.read_ledgers():
        place = books.partition.partition_id
        numbers = [one.commit_number for one in [*engine.ledger(), *engine.retries()] if one.partition_id == place]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def _words(world: LetterWorld, letter: KeptLetter) -> list[str]:
    return world.logs[letter.partition_id][letter.sequence_number].body.decode().split()
