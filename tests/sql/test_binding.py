"""No statement of a batch binds what the same batch makes, and one that does is seen."""

from pathlib import Path

import pytest

from tests.offenders import holds_for
from tests.sql.statements import every_batch

pytest.importorskip("sqlfluff", reason="the gate needs sqlfluff: pip install sqlfluff")

from tests.sql.binding import early

USER = Path(__file__).parents[2] / "infra" / "hooks" / "database_user.sql"
ADD = "ALTER TABLE hubledger.home ADD floors int;"
OFFENDERS = {
    "the filter of an index": f"{ADD} CREATE INDEX ix ON hubledger.home (home_id) WHERE floors IS NOT NULL;",
    "a column in a condition": f"{ADD} DELETE FROM hubledger.home WHERE floors = 1;",
    "a read for an insert": f"{ADD} INSERT INTO hubledger.parcel (a) SELECT h.floors FROM hubledger.home AS h;",
    "the key of an index": f"{ADD} CREATE INDEX ix ON hubledger.home (floors);",
    "a name in brackets and capitals": f"{ADD} UPDATE [hubledger].[Home] SET [Floors] = 1;",
    "the second of two columns": "ALTER TABLE hubledger.home ADD a int, b int; UPDATE hubledger.home SET b = 1;",
    "a use inside of a block": f"IF 1 = 1 BEGIN {ADD} UPDATE hubledger.home SET floors = 1; END;",
    "a column that a text adds": f"EXEC(N'{ADD}'); UPDATE hubledger.home SET floors = 1;",
    "a text that does both": f"EXEC(N'{ADD} UPDATE hubledger.home SET floors = 1;');",
    "a new name": "EXEC sp_rename N'hubledger.home.a', N'b', N'COLUMN'; UPDATE hubledger.home SET b = 1;",
    "a type": "CREATE TYPE hubledger.ids AS TABLE (id int); DECLARE @ids hubledger.ids;",
    "a view after a different statement": "SET NOCOUNT ON; CREATE VIEW hubledger.v AS SELECT 1 AS a;",
}
INNOCENT = {
    "a table and all over it": (
        "CREATE TABLE hubledger.parcel (a int NOT NULL, b int); CREATE INDEX ix ON hubledger.parcel (a) WHERE b > 1;"
        " INSERT INTO hubledger.parcel (a, b) VALUES (1, 2);"
        " ALTER TABLE hubledger.parcel ADD CONSTRAINT ck CHECK (b > 1);"
    ),
    "a text of its own": f"{ADD} EXEC(N'CREATE INDEX ix ON hubledger.home (home_id) WHERE floors IS NOT NULL;');",
    "a text with quotes": f"{ADD} EXEC(N'CREATE INDEX ix ON hubledger.home (home_id) WHERE time_zone = N''floors'';');",
    "the statement itself": "ALTER TABLE hubledger.home ADD floors int CONSTRAINT ck CHECK (floors > 0), rooms int;",
    "a word in quotes": f"{ADD} UPDATE hubledger.home SET time_zone = N'floors';",
    "a remark": f"{ADD} UPDATE hubledger.home SET armed = 1; -- floors of hubledger.home",
}


@holds_for(OFFENDERS)
def test_a_planted_statement_that_binds_too_early_is_seen(case: str) -> None:
    assert len(early(OFFENDERS[case])) == 1


@holds_for(INNOCENT)
def test_a_statement_that_the_server_binds_in_time_is_let_through(case: str) -> None:
    assert early(INNOCENT[case]) == []


def test_no_batch_binds_what_it_makes() -> None:
    batches = {**every_batch(), USER.name: USER.read_text(encoding="utf-8")}
    assert {name: found for name, text in batches.items() if (found := early(text))} == {}
