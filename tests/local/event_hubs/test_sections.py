"""Lists cut without being decoded, and the sections of messages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import DecodeError, Symbol, encode
from local.event_hubs.sections import items, sections
from tests.local.event_hubs.messages import section

MESSAGE = section(0x72, {Symbol("a"): 1}) + section(0x75, b"body")


@given(st.lists(st.integers(-5, 5) | st.text(max_size=400) | st.binary(max_size=400)))
def test_the_items_of_a_list_are_its_values_still_encoded(values: list[Any]) -> None:
    assert items(encode(values), 0) == [encode(value) for value in values]
    assert items(encode({"a": 1}), 0) == [encode("a"), encode(1)]
    assert items(b"\x45", 0) == []


def test_a_value_that_is_no_whole_list_has_no_items() -> None:
    for encoded in ["41", "c0", "c000", "c00101", "c002ff41", "c0ff0141", "c0040241a1ff", "c0030241a1"]:
        with pytest.raises(DecodeError):
            pytest.fail(f"{encoded} has the items {items(bytes.fromhex(encoded), 0)}")


def test_the_sections_of_a_message_cover_it_whatever_the_form_of_their_descriptors() -> None:
    long_form = b"\x00\x80" + (0x75).to_bytes(8, "big") + encode(b"body")
    for message, codes in ((MESSAGE, [0x72, 0x75]), (long_form, [0x75])):
        found = list(sections(message))
        assert [section.code for section in found] == codes
        assert b"".join(message[section.start : section.end] for section in found) == message


def test_a_message_cut_within_a_section_is_refused() -> None:
    for length in set(range(1, len(MESSAGE))) - {next(sections(MESSAGE)).end}:
        with pytest.raises(DecodeError):
            list(sections(MESSAGE[:length]))
