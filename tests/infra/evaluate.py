"""The values of Bicep's expressions for given parameters, without its compiler: the part of the language that we test.

A name that is not given is read from the variables of the file, else from the defaults of its parameters.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tree_sitter import Node

from tests.infra.bicep import PARSER, Expression, File


class Failed(Exception):
    """A call of `fail()`: the deployment ends with this text."""


def _fail(text: str) -> None:
    raise Failed(text)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "concat": lambda *lists: [each for one in lists for each in one],
    "contains": lambda whole, part: part in whole,
    "empty": lambda value: not value,
    "fail": _fail,
    "join": lambda parts, by: by.join(parts),
    "last": lambda value: value[-1],
    "length": len,
    "split": lambda text, by: text.split(by),
    "startsWith": lambda text, start: text.lower().startswith(start.lower()),
    "toLower": str.lower,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
}


class Evaluator:
    """The values of one file; `given` are the parameters that differ from their defaults, and names of other files."""

    def __init__(self, file: File, given: Mapping[str, Any]) -> None:
        self._given = given
        self._declared = {one.name: one.value for kind in ("parameter", "variable") for one in file.of_kind(kind)}

    def __call__(self, value: Any) -> Any:
        """Return the value of an expression of `bicep.py`, with all that is inside it."""
        if isinstance(value, Expression):
            return self._node(_parsed(value.text))
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, dict):
            return {key: self(each) for key, each in value.items()}
        return value

    def name(self, name: str) -> Any:
        """Return the value of a parameter or variable."""
        return self._given[name] if name in self._given else self(self._declared[name])

    def _node(self, node: Node) -> Any:
        text, parts = (node.text or b"").decode(), [one for one in node.named_children if one.type != "comment"]
        match node.type:
            case "identifier" | "property_identifier" | "variable_access":
                return self.name(text)
            case "number":
                return int(text)
            case "boolean":
                return text == "true"
            case "string":
                return "".join(self._piece(each) for each in parts)
            case "array":
                return [self._node(each) for each in parts]
            case "parenthesized_expression":
                return self._node(parts[0])
            case "unary_expression":
                return not self._node(parts[0])
            case "ternary_expression":
                return self._node(parts[1]) if self._node(parts[0]) else self._node(parts[2])
            case "binary_expression":
                return self._binary(node, parts)
            case "call_expression":
                called = (parts[0].text or b"").decode()
                return FUNCTIONS[called](*(self._node(each) for each in parts[1].named_children))
        raise NotImplementedError(f"{node.type}: {text}")

    def _binary(self, node: Node, parts: list[Node]) -> Any:
        operator = node.children[1].type
        left = self._node(parts[0])
        if operator in ("&&", "||"):
            return left if bool(left) is (operator == "||") else self._node(parts[1])
        return OPERATORS[operator](left, self._node(parts[1]))

    def _piece(self, node: Node) -> str:
        if node.type == "interpolation":
            return str(self._node(node.named_children[0]))
        return (node.text or b"").decode()


def _parsed(text: str) -> Node:
    return PARSER.parse(f"var x = {text}\n".encode()).root_node.named_children[0].named_children[-1]
