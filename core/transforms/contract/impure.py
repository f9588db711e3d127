"""Names that a pure function does not use, and the reasons."""

from collections.abc import Mapping

_CLOCK, _CHANCE = "the clock: take the time from the event", "chance: a replay makes different rows"
_ENVIRONMENT = "the environment: a replay may run in a different one"
IO = "I/O: it may fail, and gives a replay different values"
_PROCESS = "the process: the value is different in each"
_THREADS = "other threads: the order of their work varies"
USES: Mapping[str, str | None] = {  # by the beginning of a name; the longest counts, and None accepts
    "datetime.datetime.now": _CLOCK, "datetime.datetime.utcnow": _CLOCK, "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK, "time": _CLOCK, "time.struct_time": None,
    "random": _CHANCE, "secrets": _CHANCE, "numpy.random": _CHANCE, "os.urandom": _CHANCE,
    "uuid.uuid1": _CHANCE, "uuid.uuid4": _CHANCE, "uuid.uuid6": _CHANCE, "uuid.uuid7": _CHANCE,
    "uuid.getnode": _ENVIRONMENT,
    "os": _ENVIRONMENT, "os.fspath": None, "platform": _ENVIRONMENT, "locale": _ENVIRONMENT, "getpass": _ENVIRONMENT,
    "sys.argv": _ENVIRONMENT, "sys.stdin": IO,
    "socket": IO, "ssl": IO, "requests": IO, "urllib.request": IO, "urllib3": IO, "http.client": IO, "httpx": IO,
    "aiohttp": IO, "ftplib": IO, "smtplib": IO, "subprocess": IO, "shutil": IO, "tempfile": IO, "glob": IO,
    "builtins.open": IO, "builtins.input": IO, "builtins.hash": _PROCESS, "builtins.id": _PROCESS,
    "io.open": IO, "sqlite3": IO, "pyodbc": IO, "azure": IO,
    "threading": _THREADS, "multiprocessing": _THREADS, "concurrent": _THREADS, "asyncio": _THREADS,
}  # fmt: skip
KEEPS = "an event would depend on the events before it"
METHODS = ("read_text", "read_bytes", "write_text", "write_bytes")
LOCAL_ZONE = "the time zone of the machine: name a zone, such as UTC"
SET_ORDER = "the order of a set: it is different in each process; use sorted()"
