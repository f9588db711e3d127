"""The syntax gates, which read T-SQL without a server. Each takes texts by name and gives the faults of each."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.patience import allowed
from tests.sql.statements import without_markers

Faults = Mapping[str, list[str]]
Gate = Callable[[Mapping[str, str]], Faults]

ROOT = Path(__file__).parents[2]
LIBRARY = "Microsoft.SqlServer.TransactSql.ScriptDom.dll"


def gates() -> dict[str, Gate]:
    """The best that is installed here. ScriptDom's place is SCRIPTDOM, or where `make scriptdom` puts it."""
    place = Path(os.environ.get("SCRIPTDOM", ROOT / ".venv" / "scriptdom"))
    if (place / LIBRARY).exists():
        return {"ScriptDom": lambda texts: script_dom(place, texts)}
    return {"sqlfluff": sqlfluff} if find_spec("sqlfluff") else {}


def script_dom(place: Path, texts: Mapping[str, str]) -> Faults:
    """Microsoft's own parser, of SQL Server 2019: what is newer is a fault."""
    command = [str(place / "bin" / "python"), str(ROOT / "tests" / "sql" / "script_dom.py"), str(place / LIBRARY)]
    given = json.dumps({name: without_markers(text) for name, text in texts.items()})
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=allowed(60), check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise RuntimeError("ScriptDom did not run")
    return json.loads(done.stdout)


def sqlfluff(texts: Mapping[str, str]) -> Faults:
    """sqlfluff's T-SQL: written by others, and more lenient."""
    from sqlfluff.core import Linter

    linter = Linter(dialect="tsql")
    parsed = {name: linter.parse_string(without_markers(text)) for name, text in texts.items()}
    return {name: [str(one) for one in tree.violations] for name, tree in parsed.items() if tree.violations}
