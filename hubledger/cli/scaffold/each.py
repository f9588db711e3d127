"""Several elements in the body of one event: how `new` reads them, and the texts of a transform and tests for them."""

from dataclasses import dataclass

import msgspec

from core.model.transforms import ROWS_LIMIT
from hubledger.cli.console import Refused
from hubledger.cli.scaffold.code import literal

WRITTEN = "lines, array, or the name of a field"
LONGEST = 60  # characters of the name of a field
NOTE = f"An event that becomes more than {ROWS_LIMIT:,} rows is a letter (ROWS_PER_EVENT)."
_OF_FIELD = """
class Batch(Struct):
    \"""The body of an event. Other fields of it are ignored, and counted in the app's status.\"""

    elements: list[msgspec.Raw] = field(name=NAME)

"""


@dataclass(frozen=True, slots=True)
class Each:
    """The place of the elements: the lines of a body, or a list, which is the body or a field of it."""

    name: str

    @property
    def of_field(self) -> bool:
        """True where the elements are in a field."""
        return self.name not in ("lines", "array")

    def elements_of(self, body: bytes) -> list[bytes]:
        """Return the elements of a body. Raises ValueError for a body that has none."""
        if self.name == "lines":
            found = [line for line in body.splitlines() if line.strip()]
        else:
            fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if self.of_field else {self.name: body}
            if self.name not in fields:
                raise ValueError(f"it has no field {self.name}")
            found = list(map(bytes, msgspec.json.decode(fields[self.name], type=list[msgspec.Raw])))
        if not found:
            raise ValueError("it has no element")
        return found

    def body_of(self, element: bytes) -> bytes:
        """Return the body that has one element."""
        if self.of_field:
            return self._begin + element + b"]}"
        return b"[" + element + b"]" if self.name == "array" else element

    def names_text(self) -> str:
        """Return the line of the transform that makes the decoder of a body. A body of lines needs no such line."""
        if self.of_field:
            return "_decoded_batch = body_decoder(Batch)\n"
        return "" if self.name == "lines" else "_decoded_list = msgspec.json.Decoder(list[msgspec.Raw]).decode\n"

    def class_text(self) -> str:
        """Return the text of the class of a body that holds its elements in a field."""
        return _OF_FIELD.replace("NAME", literal(self.name)) if self.of_field else ""

    def found_text(self, room: str) -> str:
        """Return the end of the function of the transform that finds the elements of a body."""
        if self.name == "lines":
            return "    return [line for line in body.splitlines() if line.strip()]"
        found = "_decoded_batch(body).elements" if self.of_field else "_decoded_list(body)"
        fault = "error" if self.of_field else "fault_of_body(body, error)"
        return f"""\
    try:
        return [bytes(each) for each in {found}]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoisonEvent(f"the body has no list of {room}: {{{fault}}}") from error"""

    def body_text(self) -> str:
        """Return the function of the tests that makes a body of elements."""
        joined = 'b", ".join(elements)'
        whole = f'{self._begin!r} + {joined} + b"]}}"' if self.of_field else f'b"[" + {joined} + b"]"'
        whole = r'b"\n".join(elements)' if self.name == "lines" else whole
        return f"def body_of(*elements: bytes) -> bytes:\n    return {whole}\n"

    @property
    def _begin(self) -> bytes:
        return b'{"%b": [' % self.name.encode()


def each_of(name: str) -> Each:
    """Return the place of the elements. Raises Refused for a name that no field of the transform can have."""
    if not 1 <= len(name) <= LONGEST or any(letter in '"\\' or not letter.isprintable() for letter in name):
        raise Refused(f"--each {name}: write {WRITTEN}, which has 1 to {LONGEST} characters and no quote or backslash")
    return Each(name)
