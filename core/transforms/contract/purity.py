"""Purity, as far as the source shows it: a transform reads only its arguments and writes only the rows that it returns.

A comment on the line accepts a finding: `# pure: ` and the reason.
"""

import ast
import re

from core.transforms.contract.impure import IO, KEEPS, LOCAL_ZONE, METHODS, SET_ORDER, USES

Finding = tuple[int, str]  # a line, and its fault
ACCEPTED = re.compile(r"#\s*pure:\s*\S")

_METHODS_THAT_CHANGE = """
add append appendleft clear discard extend extendleft insert pop popitem popleft remove reverse rotate setdefault sort
update subtract difference_update intersection_update symmetric_difference_update move_to_end
"""
_CHANGES = frozenset(_METHODS_THAT_CHANGE.split())
_ORDERED = ("tuple", "list", "iter", "enumerate", "next", "deque")
_ORDERLESS = ("sorted", "set", "frozenset", "sum", "min", "max", "any", "all", "len")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Scope = _Definition | ast.Lambda
_Named = _Definition | ast.ExceptHandler | ast.MatchAs | ast.MatchStar


def findings(text: str, tree: ast.Module) -> list[Finding]:
    """Return the lines of a module that are not pure, except those that a comment accepts."""
    lines = text.split("\n")  # as the tree counts them
    found = sorted(_PurityReading(tree).found)
    return [(line, fault) for line, last, fault in found if not any(map(ACCEPTED.search, lines[line - 1 : last]))]


class _PurityReading(ast.NodeVisitor):
    """Reads a module; `found` has the first and the last line of each fault, and its text."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: set[tuple[int, int, str]] = set()
        self._imported = _imports_of(tree)
        self._bound = {name for node in tree.body for name in _stored(node)}
        self._kept = self._bound - {node.name for node in tree.body if isinstance(node, _Definition)}
        self._classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        self._locals: list[set[str]] = []  # of the functions around the place
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Read a function; its own names hide those of the module. A __hash__ may call hash()."""
        if getattr(node, "name", "") == "__hash__":
            return
        for outside in (
            *getattr(node, "decorator_list", ()),
            *node.args.defaults,
            *filter(None, node.args.kw_defaults),
        ):
            self.visit(outside)
        body = node.body if isinstance(node.body, list) else [node.body]
        arguments = [each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)]
        stored = {name for each in body for name in _stored(each)}
        shared = _shared_arguments(node.args) - stored
        kept, self._kept = self._kept, self._kept | shared
        self._locals.append({*arguments, *stored} - shared)
        for each in body:
            self.visit(each)
        self._locals.pop()
        self._kept = kept

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Read an assignment without its annotation."""
        self._visit_target(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """Note the outer names that a function writes."""
        word = type(node).__name__.lower()
        self._note(node, f"{word} {', '.join(node.names)}: {KEEPS}")

    visit_Nonlocal = visit_Global  # noqa: N815

    def visit_Name(self, node: ast.Name) -> None:
        self._note_use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._visit_target(node)
        if self._name_of(node) is None:
            self.generic_visit(node)
        else:
            self._note_use(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._visit_target(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Note the calls that read the machine, and those that change a value of the module."""
        function, root = node.func, _root(node.func)
        if isinstance(function, ast.Attribute):
            if function.attr in METHODS and not isinstance(function.value, ast.Constant):
                self._note(node, f"{function.attr}() is {IO}")
            if function.attr in _CHANGES and (self._is_kept(root) or self._is_of_class(function.value)):
                self._note(node, f"{root}.{function.attr}(): {KEEPS}")
            if function.attr == "join" and any(map(_is_set, node.args)):
                self._note(node, f"join() reads {SET_ORDER}")
            if function.attr == "astimezone" and not node.args and not node.keywords:
                self._note(node, f"astimezone() without a zone reads {LOCAL_ZONE}")
        if self._name_of(function) == "datetime.datetime.fromtimestamp" and len(node.args) + len(node.keywords) < 2:
            self._note(node, f"fromtimestamp() without a zone reads {LOCAL_ZONE}")
        self._read_arguments(node, getattr(function, "id", ""))

    def visit_For(self, node: ast.For | ast.comprehension) -> None:
        if _is_set(node.iter):
            self._note(node.iter, f"a loop reads {SET_ORDER}")
        self.generic_visit(node)

    visit_comprehension = visit_For

    def visit_SetComp(self, node: ast.SetComp | ast.GeneratorExp | ast.ListComp) -> None:
        """Read a comprehension whose order does not matter."""
        for loop in node.generators:
            self.generic_visit(loop)
        self.visit(node.elt)

    def _read_arguments(self, node: ast.Call, called: str) -> None:
        self.visit(node.func)
        for each in node.args:
            if called in _ORDERED and _is_set(each):
                self._note(node, f"{called}() reads {SET_ORDER}")
            if called == "next" and isinstance(each, ast.Name) and self._is_kept(each.id):
                self._note(node, f"next({each.id}): {KEEPS}")
            if called in _ORDERLESS and isinstance(each, ast.GeneratorExp | ast.ListComp):
                self.visit_SetComp(each)
            else:
                self.visit(each)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def _visit_target(self, node: ast.expr) -> None:
        root = _root(node)
        written = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) and not isinstance(node, ast.Name)
        if written and (self._is_kept(root) or self._is_own(root, {*self._classes, *self._imported})):
            self._note(node, f"{root} is written: {KEEPS}")

    def _is_kept(self, name: str) -> bool:
        return self._is_own(name, self._kept)

    def _is_of_class(self, node: ast.expr) -> bool:
        """Return True for a value that a class of the module holds for all its objects."""
        return not isinstance(node, ast.Name) and self._is_own(_root(node), self._classes)

    def _is_own(self, name: str, names: set[str]) -> bool:
        """Return True in a function for a name of the module that no function around it hides."""
        return bool(self._locals) and name in names and not any(name in each for each in self._locals)

    def _note_use(self, node: ast.expr) -> None:
        name = self._name_of(node)
        if name is None:
            return
        parts = name.split(".")
        beginnings = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        fault = next((USES[each] for each in beginnings if each in USES), None)
        if fault is not None:
            self._note(node, f"{name.removeprefix('builtins.')} reads {fault}")

    def _name_of(self, node: ast.expr) -> str | None:
        """Return the full name of a name or attribute, as its import gives it; None for any other expression."""
        if isinstance(node, ast.Attribute):
            before = self._name_of(node.value)
            return before and f"{before}.{node.attr}"
        if not isinstance(node, ast.Name) or any(node.id in each for each in (*self._locals, self._bound)):
            return None
        return self._imported.get(node.id, f"builtins.{node.id}" if f"builtins.{node.id}" in USES else None)

    def _note(self, node: ast.AST, fault: str) -> None:
        line: int = getattr(node, "lineno", 1)
        self.found.add((line, getattr(node, "end_lineno", line), fault))


def _imports_of(tree: ast.Module) -> dict[str, str]:
    """Return the full names of all that a module imports, by the names that it uses."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                outermost = alias.name.partition(".")[0]
                found[alias.asname or outermost] = alias.name if alias.asname else outermost
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found.update({alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names})
    return found


def _stored(node: ast.AST) -> set[str]:
    """Return the names that a statement binds, without those inside of its functions and classes."""
    found: set[str] = set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        found.add(node.id)
    if isinstance(node, _Named) and node.name:
        found.add(node.name)
    if isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    if not isinstance(node, _Scope):
        for child in ast.iter_child_nodes(node):
            found |= _stored(child)
    return found


def _shared_arguments(node: ast.arguments) -> set[str]:
    """Return the arguments whose default is one list, dictionary or set for all calls."""
    placed = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(placed) - len(node.defaults)) + node.defaults + node.kw_defaults
    pairs = zip([*placed, *node.kwonlyargs], defaults, strict=True)
    return {each.arg for each, default in pairs if isinstance(default, ast.List | ast.Dict | ast.Set)}


def _root(node: ast.expr) -> str:
    """Return the name at the beginning of attributes and elements; empty for none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_set(node: ast.expr) -> bool:
    made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return made or isinstance(node, ast.Set | ast.SetComp)
