"""Bicep files as plain values, from their syntax tree: enough to check a template without its compiler."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

PARSER = Parser(Language(tree_sitter_bicep.language()))
ESCAPED = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}
LISTED = re.compile(r"('[\w.]+'|\d+)( \| ('[\w.]+'|\d+))+")


@dataclass(frozen=True)
class Expression:
    """A value that only a deployment knows: its text, and the objects and arrays in it."""

    text: str
    parts: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Declaration:
    """A parameter, variable, output, resource or module. `of` is its type, or the path of its module. `head` is the
    condition or the loop before the object of a resource or module. A list of values as a type is `allowed`."""

    kind: str
    name: str
    line: int
    of: str
    value: Any = None
    decorators: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    existing: bool = False
    head: str = ""


@dataclass(frozen=True)
class File:
    name: str
    text: str
    declarations: tuple[Declaration, ...]
    errors: tuple[int, ...]

    def of_kind(self, kind: str) -> list[Declaration]:
        return [one for one in self.declarations if one.kind == kind]

    def var(self, name: str) -> Any:
        return next(one.value for one in self.of_kind("variable") if one.name == name)


Files = Mapping[str, File]


def read_folder(folder: Path) -> dict[str, File]:
    """Read all files below a folder. Return them by their relative paths."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.bicep"))}
    return {name: read_text(name, path.read_text("utf-8")) for name, path in found.items()}


def read_text(name: str, text: str) -> File:
    root = PARSER.parse(text.encode()).root_node
    errors = tuple(node.start_point[0] + 1 for node in walk(root) if node.type == "ERROR" or node.is_missing)
    return File(name, text, tuple(_declarations(root)), errors)


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def pieces(node: Node) -> Iterator[str | Node]:
    """Yield the parts of a text in order: signs, and interpolations. The grammar has no node for blanks before one, and
    none for blanks at an end."""
    whole, begin = node.text or b"", node.start_byte
    at = begin + 1
    for child in node.named_children:
        yield whole[at - begin : child.start_byte - begin].decode()
        text = text_of(child)
        if child.type == "interpolation":
            yield text.partition("${")[0]
            yield child
        else:
            yield ESCAPED.get(text, text[1:]) if child.type == "escape_sequence" else text
        at = child.end_byte
    yield whole[at - begin : -1].decode()


def nodes_in(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    inside: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        inside = [(f"{path}.{key}", each) for key, each in value.items()]
    elif isinstance(value, list):
        inside = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    elif isinstance(value, Expression):
        inside = [(path, each) for each in value.parts]
    for each in inside:
        yield from nodes_in(each[1], each[0])


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def _declarations(root: Node) -> Iterator[Declaration]:
    decorators: dict[str, tuple[Any, ...]] = {}
    for node in root.named_children:
        if node.type == "decorators":
            calls = [each.named_children[0].named_children for each in node.named_children]
            decorators = {
                text_of(call[0]).removeprefix("sys."): tuple(map(_value, call[-1].named_children)) for call in calls
            }
        elif node.type.endswith("_declaration"):
            yield _declaration(node, decorators)
            decorators = {}


def _declaration(node: Node, decorators: Mapping[str, tuple[Any, ...]]) -> Declaration:
    kind, children = node.type.removesuffix("_declaration"), node.named_children
    existing = any(child.type == "existing" or text_of(child) == "existing" for child in node.children)
    name, line = text_of(children[0]) if children else "", node.start_point[0] + 1
    if kind in ("resource", "module"):
        of, *rest = children[1:]
        head = inner = rest[-1] if rest else of
        while inner.type in ("if_statement", "for_statement"):
            inner = inner.named_children[-1]
        before = (head.text or b"")[: inner.start_byte - head.start_byte].decode().strip()
        return Declaration(kind, name, line, str(_value(of)), _value(inner), decorators, existing, before)
    of_type = next((text_of(each) for each in children[1:] if each.type in ("type", "nullable_type")), "")
    values = [each for each in children[1:] if each.type not in ("type", "nullable_type", "comment")]
    value = _value(values[-1]) if values else None
    if kind == "parameter" and LISTED.fullmatch(of_type):
        listed = [each.strip("'") if each.startswith("'") else int(each) for each in of_type.split(" | ")]
        of_type, decorators = type(listed[0]).__name__.replace("str", "string"), {**decorators, "allowed": (listed,)}
    return Declaration(kind, name, line, of_type, value, decorators)


def _value(node: Node) -> Any:
    match node.type:
        case "object":
            pairs = (each.named_children for each in node.named_children if each.type == "object_property")
            named = ((text_of(pair[0]) if pair[0].type == "identifier" else _value(pair[0]), pair) for pair in pairs)
            return {str(key): _value(pair[-1]) for key, pair in named if len(pair) > 1}
        case "array":
            return [_value(each) for each in node.named_children if each.type != "comment"]
        case "string" if not any(each.type == "interpolation" for each in node.named_children):
            return "".join(piece for piece in pieces(node) if isinstance(piece, str))
        case "number":
            return int(text_of(node))
        case "boolean":
            return text_of(node) == "true"
    return Expression(text_of(node), tuple(_parts(node)))


def _parts(node: Node) -> Iterator[Any]:
    for child in node.named_children:
        if child.type in ("object", "array"):
            yield _value(child)
        else:
            yield from _parts(child)


def all_of(files: Files, kind: str) -> Iterator[tuple[File, Declaration]]:
    yield from ((file, one) for file in files.values() for one in file.of_kind(kind))


def resources(files: Files) -> Iterator[tuple[File, Declaration]]:
    """Yield each resource that a deployment creates, with its file."""
    yield from ((file, one) for file, one in all_of(files, "resource") if not one.existing)


def at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return value.text if isinstance(value, Expression) else repr(value)
