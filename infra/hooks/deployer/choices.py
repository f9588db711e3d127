"""The choices in azd's environment that are no text: azd drops one that it cannot read, and takes the default."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from infra.hooks.errors import HookRefused

READABLE = {  # by the type of the parameter; each is read alike by azd and by the hooks
    "bool": (re.compile("true|false|True|False|TRUE|FALSE"), "true or false"),
    "int": (re.compile("-?[0-9]{1,18}"), "a whole number"),
}


def refuse_unreadable(infra: Path, environment: Mapping[str, str]) -> None:
    """Raise HookRefused with each choice that the parameters of main.bicep cannot take. An empty one is the default."""
    types = dict(re.findall(r"^param (\w+) (bool|int)\b", (infra / "main.bicep").read_text(encoding="utf-8"), re.M))
    given = json.loads((infra / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]
    faults = []
    for parameter, kind in types.items():
        name = re.match(r"\$\{(\w+)", str(given.get(parameter, {}).get("value")))
        text = environment.get(name[1], "") if name else ""
        form, said = READABLE[kind]
        if name and text and not form.fullmatch(text):
            faults.append(f"{name[1]} must be {said}, not {text!r}: `azd env set {name[1]} <value>`")
    if faults:
        raise HookRefused(*faults)
