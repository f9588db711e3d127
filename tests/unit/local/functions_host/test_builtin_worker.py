import asyncio
from pathlib import Path

import pytest
from azure.functions.meta import Datum

from local.functions_host.builtin_worker import BuiltinWorker
from local.functions_host.errors import IndexingFailed, NotEmulated
from local.functions_host.logs import current_invocation_id
from local.functions_host.worker import Invocation, Outcome

pytestmark = pytest.mark.asyncio

TIMER = Datum('{"IsPastDue": false}', "json")
HEAD = """
import azure.functions as func
import azure.durable_functions as df
from local.functions_host.logs import current_invocation_id
app = df.DFApp()
noted = []
"""


async def call(directory: Path, source: str) -> Outcome:
    """Run the timer function `f` of an app."""
    (directory / "function_app.py").write_text(
        HEAD + '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\n' + source
    )
    worker = BuiltinWorker(threads=1)
    try:
        await worker.index(directory)
        return await worker.invoke(Invocation("the-id", "f", {"t": TIMER}))
    finally:
        await worker.close()


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_failure_has_its_type_text_and_stack(empty_app: Path, kind: str) -> None:
    outcome = await call(empty_app, f"{kind} f(t): raise ValueError('no')")
    assert outcome.error == "ValueError: no"
    assert "raise ValueError" in outcome.stack
    assert "function_app.py" in outcome.stack


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_the_invocation_id_is_known_while_a_function_runs(empty_app: Path, kind: str) -> None:
    source = (
        f"{kind} f(t, context: func.Context): assert current_invocation_id.get() == context.invocation_id == 'the-id'"
    )
    assert await call(empty_app, source) == Outcome()
    assert current_invocation_id.get() is None


async def test_a_value_returned_without_a_binding_is_a_failure(empty_app: Path) -> None:
    outcome = await call(empty_app, "def f(t): return 1")
    assert outcome.error is not None
    assert "without a $return binding" in outcome.error


async def test_a_value_that_the_binding_cannot_hold_is_a_failure_that_names_its_type(empty_app: Path) -> None:
    (empty_app / "function_app.py").write_text(HEAD + '@app.route("f")\ndef f(req): return {"a": 1}')
    worker = BuiltinWorker()
    await worker.index(empty_app)
    request = {"method": Datum("GET", "string"), "url": Datum("http://localhost/api/f", "string")}
    fields: dict[str, dict[str, str]] = {"headers": {}, "query": {}, "params": {}}
    inputs = {"req": Datum({**request, **fields, "body": Datum(b"", "bytes")}, "http")}
    outcome = await worker.invoke(Invocation("i", "f", inputs))
    await worker.close()
    assert outcome.error == 'TypeError: unable to encode outgoing TypedData: unsupported Python type "dict"'


async def test_an_input_that_cannot_be_decoded_is_a_failure(empty_app: Path) -> None:
    (empty_app / "function_app.py").write_text(
        HEAD + '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\ndef f(t): ...'
    )
    worker = BuiltinWorker()
    await worker.index(empty_app)
    outcome = await worker.invoke(Invocation("i", "f", {"t": Datum("x", "string")}))
    await worker.close()
    assert outcome.error is not None
    assert outcome.error.startswith("NotImplementedError")


async def test_blocking_functions_run_side_by_side_up_to_the_thread_count(empty_app: Path) -> None:
    (empty_app / "function_app.py").write_text(
        HEAD
        + "import threading\nboth = threading.Barrier(2)\n"
        + '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\ndef f(t): both.wait(10)'
    )
    worker = BuiltinWorker(threads=2)
    await worker.index(empty_app)
    outcomes = await asyncio.gather(*(worker.invoke(Invocation(str(n), "f", {"t": TIMER})) for n in range(2)))
    await worker.close()
    assert outcomes == [Outcome(), Outcome()]


async def test_an_app_may_be_indexed_again(empty_app: Path) -> None:
    (empty_app / "function_app.py").write_text(
        HEAD + '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\ndef f(t): ...'
    )
    for _ in range(2):
        worker = BuiltinWorker()
        assert [function.name for function in await worker.index(empty_app)] == ["f"]
        await worker.close()


async def test_a_second_app_in_one_process_is_refused(empty_app: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "function_app.py").write_text(HEAD)
    (empty_app / "function_app.py").write_text(HEAD)
    worker = BuiltinWorker()
    await worker.index(empty_app)
    with pytest.raises(IndexingFailed, match="start another process"):
        await worker.index(other)
    await worker.close()


async def test_a_trigger_that_is_not_emulated_is_refused_by_name(empty_app: Path) -> None:
    queue = '@app.queue_trigger(arg_name="q", queue_name="q", connection="C")\ndef work(q): ...'
    (empty_app / "function_app.py").write_text(HEAD + queue)
    worker = BuiltinWorker()
    with pytest.raises(NotEmulated, match="function work: the binding q of type queueTrigger"):
        await worker.index(empty_app)
    await worker.close()


async def test_a_sync_function_with_a_durable_client_is_refused(empty_app: Path) -> None:
    client = '@app.route(route="r")\n@app.durable_client_input(client_name="client")\ndef work(req, client): ...'
    (empty_app / "function_app.py").write_text(HEAD + client)
    worker = BuiltinWorker()
    with pytest.raises(IndexingFailed, match="work function: a function with a durable client must be async def"):
        await worker.index(empty_app)
    await worker.close()


async def test_an_app_without_a_file_is_refused(tmp_path: Path) -> None:
    worker = BuiltinWorker()
    with pytest.raises(IndexingFailed, match=r"function_app\.py does not exist"):
        await worker.index(tmp_path)
    await worker.close()
