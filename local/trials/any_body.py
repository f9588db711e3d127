"""Any body at all becomes rows or a letter: the transform raises no error but PoisonEvent and MissingReference."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.errors import MissingReference, PoisonEvent
from core.model.rows import Row
from core.model.transform import Transform
from local.trials.messages import ANY_JSON, bodies
from local.trials.outcomes import Given, event_of, fault_of_rows, outcome_of, shown, transform_of

EXAMPLES = 200


def check_any_body(
    transform: Given,
    message: Any = None,
    *,
    references: Iterable[Row] = (),
    samples: Sequence[bytes] = (),
    examples: int = EXAMPLES,
) -> None:
    """Assert that any bytes, any JSON and any message, whole or damaged, become rows that can be stored, or a letter.

    A `message` is the type that the transform decodes from JSON, and `samples` are good bodies of any format: without
    either, few bodies come as far as its fields. The examples are the same in each run.
    """
    loaded, known = transform_of(transform), tuple(references)

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(any_bodies(message, samples))
    def check(body: bytes) -> None:
        _check(loaded, body, known)

    check()


def any_bodies(message: Any = None, samples: Sequence[bytes] = ()) -> st.SearchStrategy[bytes]:
    """Return a strategy for bytes, JSON, and messages and samples that are whole or damaged."""
    junk = st.binary() | ANY_JSON.map(msgspec.json.encode)
    if samples:
        junk |= st.sampled_from(samples) | cut_or_changed(st.sampled_from(samples))
    return junk if message is None else bodies(message) | damaged(bodies(message)) | junk


@st.composite
def cut_or_changed(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Return a body that is cut off, or has a different byte."""
    body = draw(whole)
    at = draw(st.integers(0, max(0, len(body) - 1)))
    changed = draw(st.none() | st.binary(min_size=1, max_size=1))
    return body[:at] if changed is None else body[:at] + changed + body[at + 1 :]


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Return a message that is cut off, has a different byte, or has a field that is missing, different or new."""
    body = draw(whole)
    if draw(st.sampled_from(("octets", "octets", "field"))) == "octets":
        return draw(cut_or_changed(st.just(body)))
    fields = msgspec.json.decode(body)
    if not isinstance(fields, dict) or not fields:
        return msgspec.json.encode([fields, draw(ANY_JSON)])
    name = draw(st.sampled_from(sorted(fields)) | st.text(st.characters(codec="utf-8")))
    if draw(st.booleans()):
        fields[name] = draw(ANY_JSON)
    else:
        fields.pop(name, None)
    return msgspec.json.encode(fields)


def _check(transform: Transform, body: bytes, known: tuple[Row, ...]) -> None:
    found = outcome_of(transform, event_of(body), known)
    if found.error is not None and not isinstance(found.error, PoisonEvent | MissingReference):
        raise AssertionError(
            f"{shown(body)} raised {found}: such a letter is retried, although it can never succeed; raise PoisonEvent"
        ) from found.error
    if (fault := fault_of_rows(transform, found.rows)) is not None:
        raise AssertionError(f"{shown(body)}: {fault}; raise PoisonEvent for a value that is out of range")
