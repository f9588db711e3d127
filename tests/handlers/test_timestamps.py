import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from azure.functions import meta
from hypothesis import example, given
from hypothesis import strategies as st

from handlers.timestamps import read_times_fast
from tests.patience import allowed

ROOT = Path(__file__).parents[2]


def loaded_again() -> Any:
    """The worker library's converter from a second load of its module, in which nothing was replaced."""
    spec = spec_from_file_location("azure.functions.meta_untouched", str(meta.__file__))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._BaseConverter


FAST, SLOW = meta._BaseConverter, loaded_again()
assert read_times_fast()


def reading(converter: Any, stamp: str | None) -> tuple[object, ...]:
    try:
        moment = converter._parse_datetime(stamp)
    except Exception as error:  # noqa: BLE001 - which one is the answer
        return (type(error),)
    return (moment, moment and moment.tzinfo)


def assert_same(stamp: str | None) -> None:
    """Compare both readers: the fast one may only read a stamp that the library refuses with ValueError."""
    fast, slow = reading(FAST, stamp), reading(SLOW, stamp)
    assert fast == slow or (slow == (ValueError,) and isinstance(fast[0], datetime)), stamp


DAY, SECONDS = "2026-11-21", "2026-11-21T02:15:00"
AFTER_SECONDS = (
    "", "Z", "z", " Z", " ", "\n", ".", ".Z", ",5", ",123456Z", ".1234567", ".12345678Z", ".123456789+00:00", ".12a",
    "+00:00", "-00:00", "+0000", "+00", "+00:00:00", "+00:00:00.000001", "+01:00", ".5-11:30", ".1234567+02:00",
    "+24:00", "ZZ", "Z+00:00", "\x00", ".-12345",
)  # fmt: skip
AFTER_DAY = ("", "t02:15:00", " 02:15:00", "T02:15", "T02", "T24:00:00", "T02:60:00", "T02:15:60", "T-2:15:00",
             "T02:15:0٠", "T\ud8002:15:00")  # fmt: skip
OTHERS = (
    "", " ", "null", "2026-11-31T02:15:00", "0000-01-01T00:00:00", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.9999999Z", "2026-W47-6T02:15:00", "20261121T021500Z", "2026-325T02:15:00",
    "2026-1-2T03:04:05", f" {SECONDS}", f"-{SECONDS}", f"+{SECONDS}", "٢٠٢٦-11-21T02:15:00", "11/21/2026 02:15:00",
    "11/21/2026 02:15:00Z", "11/21/2026 02:15:00.2959421Z", "11/21/2026 02:15:00+00:00", "21/11/2026 02:15:00",
    "2026/11/21 02:15:00", "1700000000",
)  # fmt: skip
CORPUS = (None, *OTHERS, *(DAY + end for end in AFTER_DAY), *(SECONDS + end for end in AFTER_SECONDS))


def test_known_stamps_are_read_or_refused_as_the_library_does() -> None:
    assert "fast" in vars(FAST.__dict__["_parse_datetime"])
    assert "fast" not in vars(SLOW.__dict__["_parse_datetime"])
    assert [reading(FAST, stamp) for stamp in CORPUS] == [reading(SLOW, stamp) for stamp in CORPUS]


FRACTIONS = st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=7).map(".{}".format))
ZONES = ["", "Z", *(f"{sign}{hours:02}:{minutes:02}" for sign in "+-" for hours in (0, 1, 25) for minutes in (0, 59))]


@given(st.datetimes(), st.sampled_from(["%Y-%m-%dT", "%m/%d/%Y "]), FRACTIONS, st.sampled_from(ZONES))
def test_stamps_of_any_form_and_zone_are_read_as_the_library_reads_them(
    moment: datetime, day: str, fraction: str, zone: str
) -> None:
    written = moment.isoformat(timespec="seconds") if "T" in day else f"{moment:%m/%d/%Y %H:%M:%S}"
    assert_same(f"{written}{fraction}{zone}")


@given(st.text("0123456789-:.TZ+ ", max_size=32), st.datetimes(), st.integers(0, 26), st.sampled_from("0-:.,TZ+ Wz/"))
@example("", datetime(2026, 1, 1), 19, ",")  # noqa: DTZ001
def test_garbage_and_a_stamp_with_one_wrong_character_are_read_as_the_library_reads_them(
    garbage: str, moment: datetime, place: int, character: str
) -> None:
    assert_same(garbage)
    stamp = f"{moment.isoformat(timespec='microseconds')}Z"
    assert_same(stamp[:place] + character + stamp[place + 1 :])


def test_the_stamp_that_the_host_sends_is_read_without_the_librarys_cascade() -> None:
    moment = FAST._parse_datetime("2026-11-21T02:15:00.295942")
    assert moment == datetime(2026, 11, 21, 2, 15, 0, 295_942)  # noqa: DTZ001
    assert FAST._parse_datetime("2026-11-21T02:15:00Z").tzinfo is UTC


SCRIPT = """
from azure.functions import meta
from handlers.timestamps import read_times_fast

own = meta._BaseConverter
known = own.__dict__["_parse_datetime"]
others = [
    classmethod(lambda cls, text, zone: None), classmethod(lambda cls, stamp: None),
    staticmethod(lambda cls, datetime_str: None), lambda cls, datetime_str: None, None,
]
for other in others:
    own._parse_datetime = other
    assert read_times_fast() is False and own.__dict__["_parse_datetime"] is other, other
del own._parse_datetime
assert read_times_fast() is False and "_parse_datetime" not in own.__dict__
own._parse_datetime = known
assert read_times_fast() is True
fast = own.__dict__["_parse_datetime"]
assert fast is not known and read_times_fast() is True and own.__dict__["_parse_datetime"] is fast
"""


def test_an_unknown_library_is_not_changed_and_a_known_one_once() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=allowed(60))
    assert done.returncode == 0, done.stderr
