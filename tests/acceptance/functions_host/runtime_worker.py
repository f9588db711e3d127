"""A Worker on Microsoft's own library, azure-functions-runtime, to compare ours with it. For tests only.

Its package says Python 3.13, and it runs on 3.11 unchanged.
"""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local.functions_host.builtin_worker import BuiltinWorker
from local.functions_host.errors import IndexingFailed
from local.functions_host.function import FunctionDescription, describe_function, refuse_what_is_not_emulated
from local.functions_host.invoker import Invocation, InvocationResult, Worker


class StatusResult(SimpleNamespace):
    Failure, Success, Cancelled = 0, 1, 2


class BindingInfo(SimpleNamespace):
    undefined, out, inout = 0, 1, 2


MESSAGES = ("WorkerInitResponse", "WorkerMetadata", "RpcException", "RpcFunctionMetadata", "RpcRetryOptions")
PROTOS = SimpleNamespace(StatusResult=StatusResult, BindingInfo=BindingInfo, **dict.fromkeys(MESSAGES, SimpleNamespace))
HOW_TO_GET_IT = (
    "azure-functions-runtime is not installed: pip install --ignore-requires-python --no-deps "
    "azure-functions-runtime==1.3.0 azurefunctions-extensions-base==1.2.0"
)


def worker_of(name: str) -> Worker:
    return BuiltinWorker() if name == "builtin" else RuntimeWorker()


class RuntimeWorker:
    """Indexes and invokes through azure_functions_runtime, in this process."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        import azure_functions_runtime as runtime
        from azure_functions_runtime import handle_event

        if str(directory) not in sys.path:
            sys.path.insert(0, str(directory))
        runtime.start_threadpool_executor()
        body = SimpleNamespace(capabilities={}, function_app_directory=str(directory))
        asked = SimpleNamespace(worker_init_request=body)
        properties = {"host": "127.0.0.1", "protos": PROTOS}
        answer = await runtime.worker_init_request(SimpleNamespace(request=asked, properties=properties))
        if answer.result.status != 1:
            raise IndexingFailed(answer.result.exception.message)
        found: list[Any] = list(handle_event._metadata_result or ())
        self._ids |= {one.name: one.function_id for one in found}
        described = [describe_function(one.name, one.raw_bindings, _retry_settings(one.retry_options)) for one in found]
        for each in described:
            refuse_what_is_not_emulated(each)
        return described

    async def invoke(self, invocation: Invocation) -> InvocationResult:
        from azure_functions_runtime.native_invocation import invocation_request_native

        ok, value, _, error, stack = await invocation_request_native(
            invocation.invocation_id,
            self._ids[invocation.function_name],
            list(invocation.inputs.items()),
            dict(invocation.trigger_metadata),
            retry_count=invocation.retry_count,
            max_retry_count=invocation.max_retry_count,
        )
        return InvocationResult(value) if ok else InvocationResult(error=_from_repr(error), stack=stack)

    async def close(self) -> None:
        from azure_functions_runtime.utils.threadpool import stop_threadpool_executor

        stop_threadpool_executor()


def _retry_settings(options: Any) -> dict[str, str] | None:
    """Return the options in the words of the decorator, so that one parser reads both workers' policies."""
    if options is None:
        return None
    intervals = ("delay_interval", "minimum_interval", "maximum_interval")
    settings = {name: str(getattr(options, name)).zfill(8) for name in intervals if hasattr(options, name)}
    return {**settings, "strategy": options.retry_strategy, "max_retry_count": str(options.max_retry_count)}


def _from_repr(error: str) -> str:
    name, _, rest = error.partition("(")
    try:
        texts = ast.literal_eval(f"({rest[:-1]},)")
    except (SyntaxError, ValueError):
        return error
    return f"{name}: {texts[0] if texts else ''}"
