"""A text mentions a subject in each spelling that bodies have, and in no longer word."""

import json
from unicodedata import normalize
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.erasure.erasure import PEOPLE_WROTE, values_without_subjects
from core.settle.mentions import body_text, candidates_of, mention_of, needles_of, sized_texts, without_subjects

SPELLED = {
    "home-7": [
        "=home-7", "home-7.", "/home-7/", "#home-7", "*home-7*", '"home-7"', "'home-7'", "`home-7`", "“home-7”",
        "«home-7»", "home-7;x", "(home-7)", "[home-7]", "<home-7>", "home_id%3Dhome-7", "user:home-7@", "home-7\u2028",
        r"\"home-7\"", r"C:\\home-7", "%22home-7%22", "?home=home-7&x=1", "{home-7}", "home-7|home-8", "home-7\x00",
    ],
    "Zoë": ["Zo%C3%AB", r'"Zo\u00eb"', "/Zoë/", "Zoe\u0308", "Zo&euml;", "Zo&#235;", r"Zo\\u00eb", "Zo%25C3%25AB"],
    "Anna Smith": ["Anna+Smith", "Anna%20Smith", "dear Anna Smith,", "a=Anna%2520Smith", r"Anna\u0020Smith"],
    "a\\b": [r"a\\b", r'"a\\\\b"', "a%5Cb"],
    'say "hi"': [r"say \"hi\"", "say %22hi%22", "say &quot;hi&quot;"],
    "анна": ['{"k": "\\u0430\\u043d\\u043d\\u0430"}', "%D0%B0%D0%BD%D0%BD%D0%B0"],
}  # fmt: skip


@pytest.mark.parametrize(("subject", "text"), [(name, text) for name, texts in SPELLED.items() for text in texts])
def test_a_subject_is_found_in_each_spelling(subject: str, text: str) -> None:
    mentions = mention_of(["nobody", subject])
    assert mentions(["other", text])
    assert mentions([body_text(text.encode())])
    assert mentions([body_text(b"\xef\xbb\xbf" + text.encode())])
    assert mentions([body_text(text.encode("utf-16"))])
    assert not mentions([without_subjects(text, [subject])])


UUID = "5f3e9a107b1e4c7e9d520a1b"  # in Avro, the octet of its length is a 0
BINARY = [
    (UUID, b"\x0eroom-17" + b"0" + UUID.encode() + b"\x0ekitchen*"),  # Avro, then an odd length
    ("home-7", b"\xa2ghome_idfhome-7ax\x01"),  # CBOR
    ("Zo\u00eb", b"\xa1dhomedZo\xc3\xabatbhi"),
    ("home-7", b"\x82\xa7home_id\xa6home-7\xa1x\x01"),  # MessagePack
    ("x" * 40, b"\x0a(" + b"x" * 40 + b"2\x02hi\x00"),  # Protobuf
]


@pytest.mark.parametrize(("subject", "body"), BINARY)
def test_a_subject_is_found_beside_the_octet_of_its_length_in_a_body_that_is_no_text(subject: str, body: bytes) -> None:
    assert mention_of([subject])([body])
    assert subject in set(sized_texts(body))
    assert not mention_of([f"{subject}!"])([body])
    assert set(sized_texts(b"fhome-7ax")) == set(), "this is a text"


@pytest.mark.parametrize(
    ("subject", "text"),
    [("home-7", "home-70"), ("home-7", "my-home-7"), ("home-7", "home-7-b"), ("anna", "anna.smith"),
     ("anna", "anna@example.org"), ("7", "7.5"), ("7", "17"), ("Anna Smith", "Anna Smithson"), ("Anna", "anna")],
)  # fmt: skip
def test_a_part_of_a_longer_word_is_nobody(subject: str, text: str) -> None:
    assert not mention_of([subject])([text])
    assert without_subjects(text, [subject]) == text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12), st.text(max_size=8))
@example("Jose\u0301", "")
@example("a\u212ab", "")
def test_any_subject_is_found_in_addresses_and_json_by_its_needles_too(subject: str, other: str) -> None:
    mentions, needles = mention_of([subject]), needles_of([subject])
    for name in (subject, normalize("NFC", subject), normalize("NFD", subject)):
        for text in (quote(name), quote_plus(name), json.dumps([name]), json.dumps({"q": json.dumps(name)})):
            assert mentions([text])
            assert not needles or any(needle in text for needle in needles)
    assert not mention_of([subject])([without_subjects(f" {subject} {other}", [subject])])


def test_a_hashed_subject_is_found_among_up_to_four_words_in_a_row() -> None:
    found = candidates_of('{"who": "Anna van der Berg", "at": "home-7", "q": "Zo%C3%AB", "to": "tel:+49170;x"}')
    assert {"Anna", "Anna van der Berg", "home-7", "Zoë", "+49170", "49170"} <= found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["home-7", "14:47:05", "47"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["why", "keys", "at", "x"]), inner),
    max_leaves=9,
)


@given(st.lists(VALUES, max_size=3))
def test_any_json_of_ours_stays_valid_and_the_same_but_for_the_subject(values: list[object]) -> None:
    text = "\n".join(map(json.dumps, values))
    after = values_without_subjects(text, ["home-7", "47"])
    for was, now in zip(values, map(json.loads, after.split("\n") if after else []), strict=True):
        assert _same(was, now, is_text=False)


def _same(was: object, now: object, *, is_text: bool) -> bool:
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(
            _same(was[name], now[name], is_text=is_text or name in PEOPLE_WROTE) for name in was
        )
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(_same(*pair, is_text=is_text) for pair in zip(was, now, strict=True))
    if isinstance(was, str) and is_text:
        return now == without_subjects(was, ["home-7", "47"])
    return bool(was == now)


def test_times_and_numbers_of_requests_stay() -> None:
    history = json.dumps({"at": "2026-01-01T14:47:05Z", "by": "ann", "why": "for 47, please"}) + "\n"
    assert json.loads(values_without_subjects(history, ["47"])) == {
        "at": "2026-01-01T14:47:05Z", "by": "ann", "why": "for erased, please",
    }  # fmt: skip
    why = json.dumps({"why": '{"home": "47"}', "reason": '["47", {"at": "47"}]'})
    assert json.loads(values_without_subjects(why, ["47"])) == {
        "why": '{"home": "erased"}', "reason": '["erased", {"at": "erased"}]',
    }  # fmt: skip
    asked = json.dumps({"asked": json.dumps({"keys": ["47", "470"], "from": {"number": "47"}}), "keys": ["47"]})
    left = json.loads(values_without_subjects(asked, ["47"]))
    assert (json.loads(left["asked"]), left["keys"]) == (
        {"keys": ["erased", "470"], "from": {"number": "47"}},
        ["erased"],
    )
