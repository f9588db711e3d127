"""The reference: the tables after one owner that sees every event once, in order, and never fails."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row, row_table
from core.model.transforms import Transform
from core.settle.settle import settle
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import ROW_CLASSES, STANDING

Logs = Mapping[str, Sequence[Event]]
Absent = Mapping[str, Set[int]]


def assert_equals_one_pass(
    held: Engine, logs: Logs, absent: Absent | None = None, transform: Transform = STANDING
) -> None:
    """Each event of each log has one outcome, in order, and rows, states and letters are those of one pass.

    A state that no column orders must be written by one partition only: partitions have no order. `absent` are the
    numbers by partition that the hub lost. The logs are without them.
    """
    assert_tiles(held, logs, absent or {}, transform.row_classes)
    classes = [each for each in transform.row_classes if not row_table(each).key]
    of_states = [each for each in transform.row_classes if row_table(each).key]
    appended: list[tuple[object, ...]] = []
    states: dict[object, tuple[str, int, Row]] = {}
    letters: list[tuple[object, ...]] = []
    for partition_id, log in logs.items():
        done = settle(log, References({}), transform)
        for row_class in classes:
            appended += [(partition_id, *placed) for placed in done.rows.get(row_class, ())]
        for row_class in of_states:
            for number, _, row in done.rows.get(row_class, ()):
                place = (partition_id, number)
                key = (ReferenceKey.of(row), "" if row_table(row_class).newest_by else partition_id)
                if key not in states or _rank(row, *place) >= _rank(states[key][2], *states[key][:2]):
                    states[key] = (*place, row)
        letters += [(partition_id, each.event.sequence_number, each.error_class) for each in done.letters]
    rows = [kept for row_class in classes for kept in held.rows(row_class)]
    current = [kept for row_class in of_states for kept in held.rows(row_class)]
    _assert_same("rows", ((one.partition_id, one.sequence_number, one.ordinal, one.row) for one in rows), appended)
    _assert_same("states", ((one.partition_id, one.sequence_number, one.row) for one in current), states.values())
    stored = ((one.partition_id, one.sequence_number, one.error_class) for one in held.letters())
    _assert_same("letters", stored, letters)


def _rank(row: Row, partition_id: str, number: int) -> tuple[object, ...]:
    newest_by = row_table(type(row)).newest_by
    return (getattr(row, newest_by), partition_id, number) if newest_by else (number,)


def assert_tiles(held: Engine, logs: Logs, absent: Absent, row_classes: Iterable[type] = ROW_CLASSES) -> None:
    """The ranges of each partition follow each other in the order of their commits, and leave no number out.

    They count as absent exactly the numbers that the hub lost, and the gaps name the same numbers.
    """
    for partition_id, log in logs.items():
        ranges = [kept for kept in held.ledger() if kept.partition_id == partition_id]
        lost = absent.get(partition_id, set())
        numbers = [number for kept in ranges for number in range(kept.first, kept.last + 1)]
        assert numbers == sorted({event.sequence_number for event in log} | lost), f"partition {partition_id}"
        assert [kept.commit_number for kept in ranges] == list(range(1, len(ranges) + 1))
        for kept in ranges:
            assert kept.absent == len(lost & set(range(kept.first, kept.last + 1))), kept
        assert _gaps(held, partition_id, "absent") == sorted(lost)
        commit_of = {number: kept.commit_number for kept in ranges for number in range(kept.first, kept.last + 1)}
        for row_class in row_classes:
            kept_rows = [kept for kept in held.rows(row_class) if kept.partition_id == partition_id]
            assert all(kept.commit_number == commit_of[kept.sequence_number] for kept in kept_rows)


def _gaps(held: Engine, partition_id: str, status: str) -> list[int]:
    rows = [gap for gap in held.gaps() if gap.partition_id == partition_id and gap.status == status]
    return [number for gap in rows for number in range(gap.first, gap.last + 1)]


def _assert_same(what: str, found: Iterable[object], expected: Iterable[object]) -> None:
    stored, wanted = Counter(map(repr, found)), Counter(map(repr, expected))
    more, missing = sorted((stored - wanted).elements()), sorted((wanted - stored).elements())
    assert stored == wanted, f"{what} that one pass does not write: {more}; {what} that are missing: {missing}"
