"""Microsoft's ODBC driver, where it is installed: by name, or as the library that mssql-python-odbc of PyPI brings."""

from importlib.util import find_spec
from pathlib import Path

from core.errors import StoreMisconfigured
from core.store.sqlserver.odbc import load_driver

MISSING = (
    "no Microsoft ODBC driver here: install msodbcsql18, or pip install mssql-python-odbc and apt-get install unixodbc"
)


def microsoft_driver() -> str | None:
    """Return the newest driver's name in a connection string; None where it or the ODBC manager is missing."""
    try:
        known = load_driver()
    except StoreMisconfigured:
        return None
    if installed := [name for name in known.drivers() if "SQL Server" in name]:  # type: ignore[attr-defined]
        return str(max(installed))
    packaged = find_spec("mssql_python_odbc")
    if packaged is None or packaged.origin is None:
        return None
    found = sorted(Path(packaged.origin).parent.glob("libs/linux/debian*/x86_64/lib/libmsodbcsql-*"))
    return str(found[-1]) if found else None
