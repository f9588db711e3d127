"""Small orchestrations per second of the local functions host: started over HTTP, one activity each, state on disk."""

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import aiohttp

from bench.figures import Figure
from local.functions_host import FunctionsHost, HostOptions

ORCHESTRATIONS = 600
ROUNDS = 3
PAGE = "/runtime/webhooks/durabletask/instances?runtimeStatus=Completed&top=100000"
START = "/runtime/webhooks/durabletask/orchestrators/one_step"
APP = '''"""One orchestrator with one activity."""

import azure.durable_functions as df

app = df.DFApp()


@app.orchestration_trigger(context_name="context")
def one_step(context):
    return (yield context.call_activity("step", 1))


@app.activity_trigger(input_name="n")
def step(n: int) -> int:
    return n + 1
'''


def measure() -> Iterator[Figure]:
    """Measure the best of a few rounds, because the host starts cold."""
    logging.getLogger("functions_host").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        rate = max(asyncio.run(_rates(Path(folder))))
    yield Figure("small orchestrations of the local host", rate, "1/s", ">= 150", rate >= 150)


async def _rates(folder: Path) -> list[float]:
    (folder / "function_app.py").write_text(APP)
    (folder / "host.json").write_text('{"version": "2.0"}')
    host = FunctionsHost(folder, HostOptions(port=0, state=folder / "state.db"))
    await host.start()
    try:
        async with aiohttp.ClientSession(host.base_url) as http:
            return [await _rate(http, number) for number in range(1, ROUNDS + 1)]
    finally:
        await host.stop()


async def _rate(http: aiohttp.ClientSession, number: int) -> float:
    began = perf_counter()
    await asyncio.gather(*(_start(http) for _ in range(ORCHESTRATIONS)))
    while await _completed(http) < number * ORCHESTRATIONS:
        await asyncio.sleep(0.05)
    return ORCHESTRATIONS / (perf_counter() - began)


async def _start(http: aiohttp.ClientSession) -> None:
    async with http.post(START) as answer:
        answer.raise_for_status()


async def _completed(http: aiohttp.ClientSession) -> int:
    async with http.get(PAGE) as answer:
        return len(await answer.json())
