"""Parse T-SQL as SQL Server 2019 does: `python script_dom.py DLL`, a JSON object of texts in, its faults out.

Runs under the interpreter of `make scriptdom`, whose packages the rest of the tests must not see.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def main(library: str) -> None:
    parser, reader = load(library)
    faults = {}
    for name, text in json.load(sys.stdin).items():
        _, found = parser.Parse(reader(text), None)
        if found.Count:
            faults[name] = [f"line {one.Line}: {one.Message}" for one in found]
    json.dump(faults, sys.stdout)


def load(library: str) -> tuple[Any, Any]:
    import dotnetcore2
    from clr_loader import get_coreclr
    from pythonnet import set_runtime

    root = Path(dotnetcore2.__file__).parent / "bin"
    (version,) = [folder.name for folder in (root / "shared" / "Microsoft.NETCore.App").iterdir()]
    framework = {"name": "Microsoft.NETCore.App", "version": version}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "runtimeconfig.json"
        config.write_text(json.dumps({"runtimeOptions": {"tfm": "netcoreapp3.1", "framework": framework}}))
        set_runtime(get_coreclr(runtime_config=str(config), dotnet_root=str(root)))
        import clr
    clr.AddReference(library)
    from Microsoft.SqlServer.TransactSql.ScriptDom import TSql150Parser
    from System.IO import StringReader

    return TSql150Parser(True), StringReader


if __name__ == "__main__":
    os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"  # the runtime looks for an old libicu otherwise
    main(sys.argv[1])
