"""A receiver of OTLP over HTTP, on loopback: it decodes what arrives, and can keep silent."""

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


def attributes_of(found: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found.attributes}


class Received:
    def __init__(self) -> None:
        self.address = ""
        self.spans: list[Any] = []
        self.metrics: dict[str, list[Any]] = {}
        self.resources: list[dict[str, Any]] = []

    def take(self, path: str, body: bytes) -> None:
        request = REQUESTS[path].FromString(body)
        for sender in getattr(request, "resource_spans", ()):
            self.resources.append(attributes_of(sender.resource))
            self.spans += [span for scope in sender.scope_spans for span in scope.spans]
        for sender in getattr(request, "resource_metrics", ()):
            self.resources.append(attributes_of(sender.resource))
            for metric in (one for scope in sender.scope_metrics for one in scope.metrics):
                points = getattr(metric, metric.WhichOneof("data")).data_points
                self.metrics.setdefault(metric.name, []).extend(points)

    def batches(self) -> list[Any]:
        return [span for span in self.spans if span.name.startswith("process ")]


@contextmanager
def receiving() -> Iterator[Received]:
    received = Received()

    def take(request: dict[str, Any], start: Callable[[str, list[tuple[str, str]]], Any]) -> list[bytes]:
        body = request["wsgi.input"].read(int(request["CONTENT_LENGTH"]))
        received.take(request["PATH_INFO"], gzip.decompress(body) if "HTTP_CONTENT_ENCODING" in request else body)
        start("200 OK", [("Content-Length", "0")])
        return []

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with make_server("127.0.0.1", 0, take, handler_class=Silent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        received.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()
