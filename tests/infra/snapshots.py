"""The sets of parameters in `sets/`: NAME.bicepparam, and a line of expected.jsonl with its resources or its refusal.

`python -m tests.infra.snapshots` has Bicep's compiler evaluate each set (`bicep snapshot`, offline) and compares. With
`--write` it writes the expectations anew, from `tests.infra.plan`, which needs no compiler.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.infra.bicep import Files, read_folder
from tests.infra.plan import CHOSEN, FOLDER, Failed, Resource, given_by, plan
from tests.patience import allowed

PLACE = (
    *("--subscription-id", "00000000-0000-0000-0000-000000000005"),
    *("--tenant-id", "00000000-0000-0000-0000-000000000006"),
    *("--location", "westeurope"),
)
PATIENCE = 300  # seconds for one set: the first one fetches the modules of the registry
MADE, ALONE, REFUSED = "made", "left alone", "refused"
ROLES = "Microsoft.Authorization/roleAssignments"
GUIDS = ("Microsoft.Insights/workbooks",)  # their names are hashes
# By module of the registry: the type of the resource that it makes; what else it makes lies in that resource.
OF_REGISTRY = {
    "avm/ptn/authorization/resource-role-assignment": ROLES,
    "avm/res/app/container-app": "Microsoft.App/containerApps",
    "avm/res/app/managed-environment": "Microsoft.App/managedEnvironments",
    "avm/res/databricks/workspace": "Microsoft.Databricks/workspaces",
    "avm/res/insights/action-group": "Microsoft.Insights/actionGroups",
    "avm/res/insights/scheduled-query-rule": "Microsoft.Insights/scheduledQueryRules",
    "avm/res/network/private-dns-zone": "Microsoft.Network/privateDnsZones",
    "avm/res/network/private-endpoint": "Microsoft.Network/privateEndpoints",
    "avm/res/network/virtual-network": "Microsoft.Network/virtualNetworks",
}
OPEN = "?"  # begins a name that is still an expression
Row = dict[str, Any]  # a set: by state, the names of each type; the last name of a role assignment is its role


def expected(files: Files, path: Path) -> Row:
    """Return the resources of a set by the plan, or its refusal."""
    try:
        facts = sorted(_fact(one) for one in plan(files, given_by(path)).values())
    except Failed as refusal:
        facts = [(REFUSED, "", str(refusal))]
    row: Row = {"set": path.stem}
    for state, kind, name in facts:
        row.setdefault(state, {}).setdefault(kind, []).append(name)
    return row


def read_rows(folder: Path) -> dict[str, Row]:
    rows = map(json.loads, (folder / "expected.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["set"]: row for row in rows}


def _pairs(row: Row, state: str) -> list[tuple[str, str]]:
    return [(kind, name) for kind, names in row.get(state, {}).items() for name in names]


def differences(wanted: Row, snapshot: Mapping[str, Any]) -> list[str]:
    """Return the resources of a snapshot that are too few or too many.

    A resource in one of a registry's modules is that module's own affair. A name that is still an expression fits any
    name of its type.
    """
    found, made = Counter(_found(snapshot)), Counter(_pairs(wanted, MADE))
    missing, extra, alone = made - found, found - made, _pairs(wanted, ALONE)
    inside = {name for kind, name in (*made, *alone) if kind in OF_REGISTRY.values()}
    for kind, name in [*extra.elements()]:
        fitting = (one for one in +missing if one[0] == kind and one[1].endswith(name.removeprefix(OPEN)))
        fits = next(fitting, None) if name.startswith(OPEN) else None
        if fits:
            missing[fits] -= 1
        if fits or (kind, name) in alone or ("/" in name and name.split("/")[0] in inside):
            extra[kind, name] -= 1
    return [
        *(f"too few: {kind} {name}" for kind, name in sorted((+missing).elements())),
        *(f"too many: {kind} {name}" for kind, name in sorted((+extra).elements())),
    ]


def faults_of(path: Path, wanted: Row, bicep: str) -> list[str]:
    """Evaluate a set with the compiler. Return how it differs from its expectation."""
    written = path.with_suffix(".snapshot.json")
    command = [bicep, "snapshot", str(path), "--mode", "overwrite", *PLACE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=allowed(PATIENCE), check=False)
        text = written.read_text(encoding="utf-8") if written.exists() else ""
    finally:
        written.unlink(missing_ok=True)
    said = f"{done.stdout}{done.stderr}{text}"
    for _, refusal in _pairs(wanted, REFUSED):
        return [] if _bare(refusal) in _bare(said) else [f"not refused by: {refusal}", *said.splitlines()[:5]]
    if done.returncode or not text:
        return [f"the compiler made no snapshot: {said[:2000]}"]
    snapshot = json.loads(text)
    return [*map(str, snapshot.get("diagnostics", [])), *differences(wanted, snapshot)]


def main(arguments: list[str] | None = None, folder: Path = CHOSEN) -> int:
    """Compare or write, and return the number of sets that differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.infra.snapshots", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the expectations from the plan")
    paths, bicep = sorted(folder.glob("*.bicepparam")), shutil.which("bicep")
    if parser.parse_args(arguments).write:
        files = read_folder(FOLDER)
        rows = [expected(files, path) for path in paths]
        lines = [f"{json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n" for row in rows]
        (folder / "expected.jsonl").write_text("".join(lines), encoding="utf-8")
        return 0
    if bicep is None:
        print(f"bicep is not on the PATH, so no compiler has evaluated the {len(paths)} sets of parameters")
        return 0
    wanted = read_rows(folder)
    faults = {path.stem: found for path in paths if (found := faults_of(path, wanted[path.stem], bicep))}
    for name, found in faults.items():
        print("\n  ".join([f"{name}:", *found]), file=sys.stderr)
    print(f"{len(paths) - len(faults)} of {len(paths)} sets of parameters lead to their expectation")
    return len(faults)


def _fact(one: Resource) -> tuple[str, str, str]:
    kind = OF_REGISTRY[one.type.partition(":")[0]] if one.type.startswith("avm/") else one.type
    name = one.name
    if one.type.startswith("avm/ptn/"):
        name = f"{'/'.join(_names(one.value['resourceId']))}/{_role(one.value)}"
    elif kind == ROLES:
        name = f"{name.rpartition('/')[0]}/{_role(one.value['properties'])}"
    elif kind in GUIDS:
        name = "*"
    return (ALONE if one.exists else MADE, kind, name)


def _found(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield type and name of each resource. The hash of the environment is `token`, as in the plan."""
    token = re.search(r"\bplan-([a-z0-9]{13})\b", json.dumps(snapshot))
    for one in snapshot["predictedResources"]:
        kind = str(one["type"])
        if kind == "Microsoft.Resources/deployments":
            continue
        resource_id = str(one.get("id", "["))
        names = [] if "[" in resource_id else list(_names(resource_id))
        last = _role(one.get("properties", {})) if kind == ROLES else "*" if kind in GUIDS else "".join(names[-1:])
        name = "/".join([*names[:-1], last]) if names else f"{OPEN}{last}"
        name = last if kind in GUIDS else name
        yield kind, name.replace(token[1], "token") if token else name


def _names(resource_id: str) -> Iterator[str]:
    """Yield the names in an id, from the outermost resource in its group. Of a group, its own name."""
    parts = re.sub(r"^/subscriptions/[^/]+", "", resource_id).split("/")[1:]
    if len(parts) > 2 and parts[0].lower() == "resourcegroups":
        parts = parts[2:]
    while parts:
        if parts[0].lower() != "providers":
            yield "/".join(parts[1:2])
        parts = parts[2:]


def _role(properties: Mapping[str, Any]) -> str:
    return str(properties.get("roleDefinitionId", "")).rpartition("/")[2]


def _bare(text: str) -> str:
    """Return a text without quotes and escapes, which a compiler may add."""
    return re.sub(r"[\"'\\]|u0022|u0027", "", text)


if __name__ == "__main__":
    sys.exit(main())
