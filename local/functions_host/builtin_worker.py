"""Run the functions of an app with the converters of azure.functions, as Microsoft's worker does.

A process runs one app, as with the real worker: the module is always called `function_app`.
"""

import asyncio
import contextvars
import functools
import importlib
import inspect
import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import azure.functions as func
from azure.functions import FunctionRegister

from local.functions_host.errors import IndexingFailed
from local.functions_host.function import FunctionDescription, describe_function, refuse_what_is_not_emulated
from local.functions_host.invoker import Invocation, InvocationResult
from local.functions_host.logs import current_invocation_id
from local.functions_host.signature import Signature, check_signature

MODULE = "function_app"

# azure-functions returns the functions of an app only once.
_known: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


def load_functions(directory: Path) -> list[Any]:
    """Return the `azure.functions` Function objects of the app. Raise IndexingFailed when there is no such app."""
    path = directory / f"{MODULE}.py"
    if not path.is_file():
        raise IndexingFailed(f"{path} does not exist: a function app defines its functions there")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        module = importlib.import_module(MODULE)
    except Exception as error:
        raise IndexingFailed(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise IndexingFailed(f"this process already runs the app of {module.__file__}: start another process")
    apps = {id(value): value for value in vars(module).values() if isinstance(value, FunctionRegister)}
    if len(apps) != 1:
        raise IndexingFailed(f"{path}: needs exactly one top-level function app object, has {len(apps)}")
    (app,) = apps.values()
    if app not in _known:
        try:
            _known[app] = app.get_functions()
        except ValueError as error:
            raise IndexingFailed(f"{path}: {error}") from error
    return _known[app]


_thread_local_storage = threading.local()


@dataclass(frozen=True, slots=True)
class RetryContext:
    """`context.retry_context` in the shape of Microsoft's worker."""

    retry_count: int
    max_retry_count: int
    rpc_exception: None = None


class InvocationContext(func.Context):
    """The `context` argument of a function."""

    def __init__(self, invocation: Invocation, directory: str) -> None:
        self._invocation = invocation
        self._directory = directory

    @property
    def invocation_id(self) -> str:
        """The id that the host's log lines of this invocation carry."""
        return self._invocation.invocation_id

    @property
    def thread_local_storage(self) -> threading.local:
        """The storage of the thread. A function may set `invocation_id` on it."""
        return _thread_local_storage

    @property
    def function_name(self) -> str:
        return self._invocation.function_name

    @property
    def function_directory(self) -> str:
        return self._directory

    @property
    def trace_context(self) -> None:
        """Distributed tracing is not emulated."""

    @property
    def retry_context(self) -> RetryContext:
        """The number of retries of this batch so far."""
        return RetryContext(self._invocation.retry_count, self._invocation.max_retry_count)


class BuiltinWorker:
    """Runs `def` functions in a pool of `threads` (None: Python's default) and `async def` ones on the loop."""

    def __init__(self, threads: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="function")
        self._signatures: dict[str, Signature] = {}

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        descriptions = []
        for function in load_functions(directory):
            name, retry = function.get_function_name(), function.get_settings_dict("retry_policy")
            descriptions.append(describe_function(name, function.get_raw_bindings(), retry))
            refuse_what_is_not_emulated(descriptions[-1])
            self._signatures[name] = check_signature(function)
        return descriptions

    async def invoke(self, invocation: Invocation) -> InvocationResult:
        """Decode the inputs, run the function and encode its result."""
        token = current_invocation_id.set(invocation.invocation_id)
        try:
            return InvocationResult(await self._run(self._signatures[invocation.function_name], invocation))
        except Exception as error:  # noqa: BLE001 - an error of a function is its outcome, and the host logs it
            return InvocationResult(error=f"{type(error).__name__}: {error}", stack=traceback.format_exc())
        finally:
            current_invocation_id.reset(token)

    async def _run(self, signature: Signature, invocation: Invocation) -> Any:
        arguments = _arguments(signature, invocation)
        if signature.is_async:
            returned = await signature.call(**arguments)
        else:
            call = functools.partial(contextvars.copy_context().run, signature.call, **arguments)
            returned = await asyncio.get_running_loop().run_in_executor(self._pool, call)
        return _encoded(signature, invocation.function_name, returned)

    async def close(self) -> None:
        await asyncio.to_thread(self._pool.shutdown)


def _arguments(signature: Signature, invocation: Invocation) -> dict[str, Any]:
    arguments = {
        name: converter.decode(
            invocation.inputs[name],
            trigger_metadata=invocation.trigger_metadata if converter.has_trigger_support() else {},
        )
        for name, converter in signature.inputs.items()
    }
    if signature.needs_context:
        arguments["context"] = InvocationContext(invocation, str(Path(inspect.getfile(signature.call)).parent))
    return arguments


def _encoded(signature: Signature, function_name: str, returned: Any) -> Any:
    if signature.returns is None:
        if returned is not None:
            raise RuntimeError(f"function {function_name!r} without a $return binding returned a non-None value")
        return None
    kind = type(returned)
    if not signature.returns.check_output_type_annotation(kind):
        raise TypeError(f'unable to encode outgoing TypedData: unsupported Python type "{kind.__name__}"')
    return signature.returns.encode(returned, expected_type=signature.return_annotation)
