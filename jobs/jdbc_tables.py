"""SQL Server and Azure SQL, which Spark's JDBC source reads and writes with one connection for each slice of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH
from core.model.ports import utc_text
from core.model.rows import OURS
from jobs.as_of import Words
from jobs.ranges import CommitSpan, quoted
from jobs.sign_in import SignIn
from jobs.tables import Tables
from jobs.transforms import schema_of

TIMES = ("timestamp", "date")
MICROS = "CONVERT(bigint, DATEDIFF_BIG(microsecond, CONVERT(datetime2(6), '1970-01-01'), {}))"
BY_CODE_POINT = " COLLATE Latin1_General_100_BIN2"
_SENT = {"string": "nvarchar(max)", "bigint": "bigint", "timestamp": "varchar(40)", "date": "varchar(40)"}
_MEMBERS = {
    "string": f"j.[{{}}]{BY_CODE_POINT}",  # a text of a document has the database's collation, ids have this one
    "bigint": "j.[{}]",
    "timestamp": "CONVERT(datetime2(6), j.[{}], 127)",  # with a T and a Z
    "date": "CONVERT(date, j.[{}], 23)",
}


@dataclass(frozen=True, slots=True)
class ServerWords(Words):
    """The SQL of SQL Server. Tests name the SQL of their stand-in.

    An instant never travels as a JDBC timestamp, because Java reads that in the time zone of its machine. `members`
    have the columns of a removed row by their type in Spark. `instant` is a literal from its text or its microseconds.
    """

    prefix: str = "hubledger."
    join: str = "INNER JOIN"
    micros: str = MICROS
    name: str = "[{}]"
    opened: str = "CROSS APPLY OPENJSON(r.[row]) WITH ({}) AS j"
    members: Mapping[str, str] = field(default_factory=lambda: _MEMBERS)
    instant: str = "CONVERT(datetime2(6), '{text}', 126)"
    text: str = "N{}"
    by_code_point: str = BY_CODE_POINT
    zone: str = ""

    def named(self, column: str) -> str:
        return self.name.format(column)

    def sent(self, value: str, column: str, kind: str) -> str:
        if kind in TIMES:
            return f"{self.micros.format(value)} AS {self.named(_sent(column, kind))}"
        return f"{value} AS {self.named(column)}"

    def documents(self, columns: Mapping[str, str]) -> str:
        typed = (f"""{self.named(name)} {_SENT[kind]} '$."{name}"'""" for name, kind in columns.items())
        return self.opened.format(", ".join(typed))

    def member(self, column: str, kind: str) -> str:
        return self.members[kind].format(column)

    def places(self, cut: Sequence[CommitSpan]) -> str:
        rows = ", ".join(f"({one.stream_id}, {quoted(one.partition_id)}, {one.up_to})" for one in cut)
        return f"(VALUES {rows}) AS c (stream_id, partition_id, up_to)"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Mapping[str, Any]]) -> str:
        rows = (", ".join(self._literal(one[name], kind) for name, kind in kinds.items()) for one in windows)
        values = ", ".join(f"({row})" for row in rows)
        return f"(VALUES {values}) AS k ({', '.join(map(self.named, kinds))})"

    def same(self, column: str, wanted: str, kind: str) -> str:
        return f"{column} = {wanted}{self.by_code_point if kind == 'string' else ''}"

    def _literal(self, value: Any, kind: str) -> str:
        if kind in ("string", "ascii"):  # the column itself is converted where it has bytes and the literal has not
            return quoted(value) if kind == "ascii" and value.isascii() else self.text.format(quoted(value))
        if kind == "timestamp":
            text, micros = utc_text(value)[:-1], (value - EPOCH) // timedelta(microseconds=1)
            return self.instant.format(text=text, micros=micros)
        return f"CONVERT(date, '{value.date().isoformat()}', 23)" if kind == "date" else str(value)


WRITERS = 8  # connections that stage at the same time
_SNAPSHOTS = "(SELECT name, is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()) r"


class NoSnapshots(Exception):
    """A statement of the database does not read one moment."""


class JdbcTables(Tables):
    """The tables on a server."""

    spans_each = 50

    def __init__(self, spark: SparkSession, url: str, sign_in: SignIn, words: ServerWords | None = None) -> None:
        super().__init__(spark)
        self.words = words or ServerWords()
        self._url = url
        self._sign_in = sign_in

    def require_snapshots(self) -> None:
        """Raise NoSnapshots unless each statement reads one moment: then a row that a replay moves is read once."""
        found = self._spark.read.jdbc(self._url, _SNAPSHOTS, properties=self._properties())
        name, is_on = found.collect()[0]
        if not is_on:
            raise NoSnapshots(
                f"the database {name} does not read row versions, so a job may miss rows that a replay moves:"
                f" run ALTER DATABASE [{name}] SET READ_COMMITTED_SNAPSHOT ON, and submit the job again"
            )

    def answer(self, query: str, columns: Mapping[str, str]) -> list[Any]:
        found = self._read(query, ["1 = 1"])
        rows = found.select(*(_sent(name, kind) for name, kind in columns.items())).collect()
        times = [place for place, kind in enumerate(columns.values()) if kind == "timestamp"]
        moment = timedelta(microseconds=1)
        return [[EPOCH + one * moment if at in times else one for at, one in enumerate(row)] for row in rows]

    def where(self, query: str, wanted: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        """Return the columns in their types: instants and days travel as microseconds."""
        found = self._read(query, list(wanted) or ["1 = 0"])
        columned = (
            (F.timestamp_micros(_sent(name, kind)) if kind in TIMES else F.col(name)).cast(kind).alias(name)
            for name, kind in columns.items()
        )
        return found.select(*columned)

    def union(self, queries: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        none = self._spark.createDataFrame([], schema_of(columns))
        return reduce(DataFrame.unionByName, (self.where(one, ["1 = 1"], columns) for one in queries), none)

    def append(self, rows: DataFrame, table: str) -> None:
        written, place = rows.coalesce(WRITERS).write, f"{self.words.prefix}{table}"
        written.jdbc(self._url, place, mode="append", properties=self._properties())

    def row_hash(self, text: Column) -> Column:
        digest = F.sha2(F.encode(text, "UTF-16LE"), 256)
        return F.conv(F.substring(digest, 1, 8), 16, 10).cast("bigint")

    def _read(self, query: str, wanted: Sequence[str]) -> DataFrame:
        """Read the rows of a query with lower-case names, with a task for each condition."""
        found = self._spark.read.jdbc(self._url, f"({query}) r", predicates=list(wanted), properties=self._properties())
        return found.toDF(*(name.lower() for name in found.columns))

    def _properties(self) -> dict[str, str]:
        return {"fetchsize": "10000", "batchsize": "10000", **self._sign_in()}


def _sent(name: str, kind: str) -> str:
    """Return the name under which a column travels."""
    return f"{OURS}{name}" if kind in TIMES else name
