"""jobs/row_texts.py: rows as texts and back."""

from core.model.rows import Row
from examples.home_security.transform import Home
from jobs.row_texts import row_of, texts_of
from tests.offenders import holds_for
from tests.sql.values import ROW_CLASSES
from tests.sql.values import row_of as sample


@holds_for(ROW_CLASSES)
def test_a_row_is_the_same_after_a_way_through_texts(row_class: type) -> None:
    row: Row = sample(row_class)
    assert row_of(row_class, texts_of(row)) == row
    assert all(text is None or isinstance(text, str) for text in texts_of(row))


def test_a_row_that_sql_refuses_has_texts_that_spark_can_hold() -> None:
    texts = texts_of(Home(home_id="\ud83d 👩", time_zone="UTC", armed=True))
    assert texts == ["\\ud83d 👩", "UTC", "1"]
    assert all(text is not None and text.encode() for text in texts)
