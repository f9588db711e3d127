"""JSON as values of an Avro schema: texts become instants, dates, decimals and bytes where the schema has them."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

_LOGICAL: dict[str, Callable[[Any], Any]] = {
    "timestamp-millis": datetime.fromisoformat, "timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat, "local-timestamp-micros": datetime.fromisoformat,
    "date": date.fromisoformat, "time-millis": time.fromisoformat, "time-micros": time.fromisoformat,
    "decimal": lambda value: Decimal(str(value)),
}  # fmt: skip


def value_of(octets: bytes, schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the value of a JSON text. `named` has the types of the schema. Raises ValueError, TypeError."""
    return _value(json.loads(octets, parse_float=Decimal), schema, named)


def _value(given: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return _branch(given, schema, named)
    schema = {"type": schema} if isinstance(schema, str) else schema
    kind, logical = schema["type"], schema.get("logicalType")
    if kind in named:
        return _value(given, named[kind], named)
    if logical in _LOGICAL:
        return _LOGICAL[logical](given)
    if kind in ("record", "error"):
        return _record(given, schema, named)
    if kind == "array":
        return [_value(each, schema["items"], named) for each in _as(list, given)]
    if kind == "map":
        return {name: _value(each, schema["values"], named) for name, each in _as(dict, given).items()}
    if kind in ("float", "double"):
        return float(given)
    return b64decode(given, validate=True) if kind in ("bytes", "fixed") else given


def _record(given: Any, schema: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    names = [field["name"] for field in schema["fields"]]
    if unknown := next((name for name in _as(dict, given) if name not in names), None):
        raise ValueError(f"it has the field {unknown}, and {schema['name']} has none")
    found = {}
    for field in schema["fields"]:
        if field["name"] in given:
            try:
                found[field["name"]] = _value(given[field["name"]], field["type"], named)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise ValueError(f"{field['name']}: {error}") from error
    return found


def _branch(given: Any, schema: list[Any], named: Mapping[str, Any]) -> Any:
    """Return the value of the first type of a union that takes it."""
    from fastavro import validate

    for one in schema:
        try:
            value = _value(given, one, named)
            if validate(value, one, raise_errors=False):
                return value
        except (ValueError, TypeError, ArithmeticError):
            continue
    raise ValueError(f"{given!r} has none of the types {schema}")


def _as(kind: type, given: Any) -> Any:
    if not isinstance(given, kind):
        raise TypeError(f"{given!r} is no {'list' if kind is list else 'object'}")
    return given
