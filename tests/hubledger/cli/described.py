"""Answers made from the API's own description: every field of every shape, with texts that a test chooses."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from handlers.api import OPERATIONS
from handlers.web.openapi import describe
from tests.hubledger.cli.small_app import Reply, Request, problem

AT = "2026-11-23T03:00:00Z"
# Words that a command acts on; every other text is the test's.
ACTED_ON = {"status": "done", "outcome": "dry_run", "kind": "repair", "result": "helped"}


@cache
def description() -> dict[str, Any]:
    """The description of the API."""
    described: dict[str, Any] = json.loads(json.dumps(describe(OPERATIONS), default=str))
    return described


class Described:
    """Answers every request with a full answer of its route's shape, or with an empty one: null and no entry wherever
    the shape allows it. Tasks are of one kind: the one that was requested last, or `kind`."""

    def __init__(
        self, text: Callable[[str], str] | None = None, *, is_empty: bool = False, kind: str = "replay"
    ) -> None:
        self._kind = kind
        self._is_empty = is_empty
        self._text = text or (lambda name: AT if name == "at" or name.endswith("_at") else name.upper())

    def __call__(self, request: Request) -> Reply:
        path = urlsplit(request.path).path.removeprefix("/api")
        self._kind = request.body["kind"] if request.method == "PUT" else self._kind
        for template, methods in description()["paths"].items():
            if (
                re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path)
                and request.method.lower() in methods
            ):
                return self._reply(methods[request.method.lower()]["responses"])
        return problem("no-such-route", 404, "there is nothing at this address")

    def _reply(self, responses: dict[str, Any]) -> Reply:
        status = min(code for code in responses if code.isdigit())
        schema = responses[status]["content"]["application/json"]["schema"]
        return Reply(self.value("", schema), int(status))

    def value(self, name: str, schema: dict[str, Any]) -> Any:
        """Return a value of a schema that has every field and one entry in every list."""
        if "$ref" in schema:
            return self.value(name, description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        if "discriminator" in schema:
            return self.value(name, {"$ref": schema["discriminator"]["mapping"][self._kind]})
        if "anyOf" in schema:
            wanted = [one for one in schema["anyOf"] if (one.get("type") == "null") is self._is_empty]
            return self.value(name, (wanted or schema["anyOf"])[0])
        if "enum" in schema:
            return ACTED_ON.get(name) if ACTED_ON.get(name) in schema["enum"] else schema["enum"][0]
        return getattr(self, f"_{schema.get('type', 'object')}")(name, schema)

    def _object(self, name: str, schema: dict[str, Any]) -> Any:
        if "properties" in schema:
            return {key: self.value(key, one) for key, one in schema["properties"].items()}
        more = schema.get("additionalProperties")
        if name == "columns" and isinstance(more, dict) and more.get("type") == "array":
            return {self._text("column"): [self._text("old"), self._text("new")]}
        return {
            self._text("key"): self.value("value", more) if isinstance(more, dict) and more else self._text("value")
        }

    def _array(self, name: str, schema: dict[str, Any]) -> Any:
        return [] if self._is_empty else [self.value(name, schema["items"])]

    def _string(self, name: str, schema: dict[str, Any]) -> Any:
        if name == "next":
            return None
        return ACTED_ON.get(name) or self._text(name)

    def _integer(self, name: str, schema: dict[str, Any]) -> Any:
        return 1_234_567

    def _number(self, name: str, schema: dict[str, Any]) -> Any:
        return 1_234.5

    def _boolean(self, name: str, schema: dict[str, Any]) -> Any:
        return True

    def _null(self, name: str, schema: dict[str, Any]) -> Any:
        return None


def unsafe(text: str) -> set[str]:
    """Return the characters of an output that a terminal may obey."""
    return {letter for letter in text if not letter.isprintable() and letter != "\n"}
