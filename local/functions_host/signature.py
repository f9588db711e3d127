"""Check a function's signature against its bindings as strictly as Microsoft's worker does when it indexes an app.

Source: `azure_functions_runtime/functions.py` (1.3.0). Only the bindings of the local host are checked: outputs
other than the HTTP response were refused before.
"""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from azure.functions import get_binding_registry
from azure.functions.decorators.core import BindingDirection

from local.functions_host.errors import IndexingFailed
from local.functions_host.function import DURABLE_CLIENT

RETURN = "$return"
CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Signature:
    """The call of a function: the converters of its inputs and of its result."""

    call: Callable[..., Any]
    is_async: bool
    needs_context: bool
    inputs: Mapping[str, Any]
    returns: Any | None
    return_annotation: Any


def check_signature(function: Any) -> Signature:
    """Return the signature of an `azure.functions` Function, or raise IndexingFailed with the worker's reason."""
    name, call = function.get_function_name(), function.get_user_function()
    parameters = set(inspect.signature(call).parameters)
    annotations = typing.get_type_hints(call)
    bindings = {binding.name: binding for binding in function.get_bindings()}
    returned = bindings.pop(RETURN, None)
    if any(binding.direction == BindingDirection.INOUT.value for binding in bindings.values()):
        raise _refuse(name, '"inout" bindings are not supported')
    if returned is not None and returned.direction != BindingDirection.OUT.value:
        raise _refuse(name, f'"{RETURN}" binding must have direction set to "out"')
    # Microsoft's worker indexes a `def` with a durable client, but the SDK awaits it, so that its calls fail.
    has_client = any(binding.type == DURABLE_CLIENT for binding in bindings.values())
    if has_client and not inspect.iscoroutinefunction(getattr(call, "client_function", call)):
        raise _refuse(name, "a function with a durable client must be async def: the SDK awaits its result")
    needs_context = CONTEXT in parameters and CONTEXT not in bindings
    if needs_context:
        _check_context(name, annotations)
        parameters.remove(CONTEXT)
    if unbound := parameters - bindings.keys():
        raise _refuse(name, f"parameters declared in Python but not in the decorators: {sorted(unbound)}")
    if missing := bindings.keys() - parameters:
        raise _refuse(name, f"bindings declared in the decorators but not in Python: {sorted(missing)}")
    _check_annotations(name, bindings, annotations)
    returns = _return_converter(name, bindings, returned, annotations)
    inputs = {each: _converter(binding) for each, binding in bindings.items()}
    return Signature(call, inspect.iscoroutinefunction(call), needs_context, inputs, returns, annotations.get("return"))


def _converter(binding: Any) -> Any:
    return get_binding_registry().get(binding.type)


def _refuse(name: str, why: str) -> IndexingFailed:
    return IndexingFailed(f"cannot load the {name} function: {why}")


def _check_context(name: str, annotations: Mapping[str, Any]) -> None:
    annotation = annotations.get(CONTEXT)
    if CONTEXT in annotations and getattr(annotation, "__name__", "") != "Context":
        raise _refuse(
            name, f'the "context" parameter is expected to be of type azure.functions.Context, got "{annotation!r}"'
        )


def _check_annotations(name: str, bindings: Mapping[str, Any], annotations: Mapping[str, Any]) -> None:
    for each, binding in bindings.items():
        if isinstance(annotations.get(each), types.GenericAlias):
            hint = "the worker reads typing.List[...], not list[...]"
            raise _refuse(name, f"binding {each} has invalid non-type annotation {annotations[each]!r}: {hint}")
        if each in annotations and not _accepts(binding, annotations[each]):
            raise _refuse(
                name,
                f'type of {each} binding "{binding.type}" does not match its Python annotation {annotations[each]!r}',
            )


def _accepts(binding: Any, annotation: Any) -> bool:
    is_generic = typing.get_origin(annotation) is not None
    if not is_generic and not isinstance(annotation, type):
        return False
    try:
        return bool(_converter(binding).check_input_type_annotation(annotation))
    except TypeError:  # a generic annotation where the converter asks issubclass()
        return False


def _return_converter(name: str, bindings: Mapping[str, Any], returned: Any, annotations: Mapping[str, Any]) -> Any:
    if returned is None:
        converters = [_converter(binding) for binding in bindings.values()]
        return next((one for one in converters if getattr(one, "has_implicit_output", lambda: False)()), None)
    converter, annotation = _converter(returned), annotations.get("return")
    if "return" in annotations:
        if not isinstance(annotation, type):
            raise _refuse(name, f"has invalid non-type return annotation {annotation!r}")
        if not converter.check_output_type_annotation(annotation):
            raise _refuse(
                name, f'Python return annotation "{annotation.__name__}" does not match binding type "{returned.type}"'
            )
    return converter
