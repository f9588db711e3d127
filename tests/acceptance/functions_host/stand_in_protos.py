"""Stand-ins for the FunctionRpc messages that azure-functions-runtime needs to index an app in-process."""

from types import SimpleNamespace
from typing import Any


class Message(SimpleNamespace):
    """A message with any fields."""


class StatusResult(Message):
    """The result of a request."""

    Failure, Success, Cancelled = 0, 1, 2


class BindingInfo(Message):
    """A binding of a function."""

    undefined, out, inout = 0, 1, 2


WorkerInitResponse = WorkerMetadata = RpcException = RpcFunctionMetadata = RpcRetryOptions = Message


def init_request(directory: str) -> Any:
    """Return the request to index the app in `directory`."""
    body = Message(capabilities={}, function_app_directory=directory)
    protos = SimpleNamespace(
        StatusResult=StatusResult,
        BindingInfo=BindingInfo,
        WorkerInitResponse=WorkerInitResponse,
        WorkerMetadata=WorkerMetadata,
        RpcException=RpcException,
        RpcFunctionMetadata=RpcFunctionMetadata,
        RpcRetryOptions=RpcRetryOptions,
    )
    return Message(request=Message(worker_init_request=body), properties={"host": "127.0.0.1", "protos": protos})
