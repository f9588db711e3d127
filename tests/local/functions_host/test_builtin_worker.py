import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from azure.functions.meta import Datum

from local.functions_host.builtin_worker import BuiltinWorker
from local.functions_host.errors import IndexingFailed
from local.functions_host.invoker import Invocation, InvocationResult
from local.functions_host.logs import current_invocation_id
from tests.patience import allowed

pytestmark = pytest.mark.asyncio

HEAD = """
import threading
import azure.functions as func
import azure.durable_functions as df
from local.functions_host.logs import current_invocation_id
app = df.DFApp()
both = threading.Barrier(2)
"""
TIMER = '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\n'


@asynccontextmanager
async def indexed(directory: Path, source: str, threads: int | None = None) -> AsyncIterator[BuiltinWorker]:
    """A worker of an app."""
    (directory / "function_app.py").write_text(HEAD + source)
    worker = BuiltinWorker(threads)
    try:
        await worker.index(directory)
        yield worker
    finally:
        await worker.close()


def call(value: str = '{"IsPastDue": false}') -> Invocation:
    return Invocation("the-id", "f", {"t": Datum(value, "json" if value.startswith("{") else "string")})


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_function_knows_its_invocation_and_its_failure_has_type_text_and_stack(
    empty_app: Path, kind: str
) -> None:
    known = "current_invocation_id.get() == context.invocation_id == 'the-id'"
    async with indexed(empty_app, f"{TIMER}{kind} f(t, context: func.Context): raise ValueError({known})") as worker:
        outcome = await worker.invoke(call())
    assert outcome.error == "ValueError: True"
    assert "raise ValueError" in outcome.stack
    assert "function_app.py" in outcome.stack
    assert current_invocation_id.get() is None


async def test_a_result_without_a_binding_and_an_input_that_cannot_be_decoded_are_failures(empty_app: Path) -> None:
    async with indexed(empty_app, f"{TIMER}def f(t): return 1") as worker:
        assert "without a $return binding" in ((await worker.invoke(call())).error or "")
        assert ((await worker.invoke(call("x"))).error or "").startswith("NotImplementedError")


async def test_blocking_functions_run_side_by_side_up_to_the_thread_count(empty_app: Path) -> None:
    async with indexed(empty_app, f"{TIMER}def f(t): both.wait({allowed(10)})", threads=2) as worker:
        assert await asyncio.gather(*(worker.invoke(call()) for _ in range(2))) == [
            InvocationResult(),
            InvocationResult(),
        ]


async def test_a_process_indexes_one_app_again_but_no_second_one(empty_app: Path, tmp_path: Path) -> None:
    async with indexed(empty_app, f"{TIMER}def f(t): ...") as worker:
        assert [function.name for function in await worker.index(empty_app)] == ["f"]
        (tmp_path / "function_app.py").write_text(HEAD)
        with pytest.raises(IndexingFailed, match="start another process"):
            await worker.index(tmp_path)


async def test_a_sync_function_with_a_durable_client_is_refused(empty_app: Path) -> None:
    client = '@app.route(route="r")\n@app.durable_client_input(client_name="client")\ndef work(req, client): ...'
    with pytest.raises(IndexingFailed, match="work function: a function with a durable client must be async def"):
        async with indexed(empty_app, client):
            pass


async def test_an_app_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexingFailed, match=r"function_app\.py does not exist"):
        await BuiltinWorker().index(tmp_path)
