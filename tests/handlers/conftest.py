from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from core.aggregation.store import Aggregations
from handlers.app import aggregation, app
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, ingest, stage
from tests.fakes.builders import EPOCH, reading
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import Reply, Running


@pytest.fixture
def running(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Running]:
    """The app over the database. It reads its settings, the environment, on its first use."""
    made = Running(sqlite, caplog, monkeypatch)
    yield made
    made.close()


class Aggregating(Running):
    """The app with a spark-submit whose jobs run until they are killed."""

    def order(self, name: str, body: object, run_id: str | None = None) -> Reply:
        given = {"order_id": str(uuid4()), **body} if isinstance(body, dict) else body
        return self.post(f"{name}_aggregation", given, None if run_id is None else {"run_id": run_id})

    def commit(self) -> None:
        ingest(app().core.ingestion.store, [reading()])

    def step(self) -> list[str]:
        return list(self.post("start_aggregation", {}).body["did"])

    def begin(self) -> str:
        self.commit()
        assert self.step() == ["submitted"]
        return self.run_id

    def stage(self, quality: str | None = None) -> None:
        tables, staged = SqliteAggregation(self.sqlite), f"s-{self.run_id}"
        stage(tables, staged, self.run_id, [])
        finish(tables, staged, self.run_id, EPOCH, quality)

    @property
    def run_id(self) -> str:
        run = Aggregations(app().brief).read_standing(HOME_ACTIVITY).last_run
        assert run is not None
        return run.run_id

    def shown(self, run_id: str) -> Reply:
        return self.get("show_aggregation", {"run_id": run_id})

    def listed(self, **params: str) -> Reply:
        return self.get("list_aggregations", None, **params)


@pytest.fixture
def aggregating(
    sqlite: SqliteEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Aggregating]:
    script = tmp_path / "spark-submit"
    script.write_text("#!/bin/sh\necho the reason >&2\nexec sleep 600\n")
    script.chmod(0o755)
    made = Aggregating(sqlite, caplog, monkeypatch)
    made.restart(SPARK_ENGINE="local", SPARK_SUBMIT=str(script))
    yield made
    made.restart(SPARK_ENGINE="local", SPARK_SUBMIT=str(script))
    own = aggregation()
    if own is not None:
        for job in (sqlite.path.parent / "spark").glob("*/"):
            own.engine.cancel(job.name)
    made.close()
