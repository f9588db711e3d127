"""The choices that a pipeline keeps, those of main.parameters.json and of the hooks.

`python -m tests.infra.pipeline` writes them into azure.yaml and into `env` of the workflows that provision.
"""

import re

from infra.hooks.deployer.address import ADDRESS
from infra.hooks.deployer.existing import GROUPS
from infra.hooks.rights import JOB_IDENTITY
from infra.hooks.smoke.run import CHOICES
from tests.repo.product import ROOT

PARAMETERS = ROOT / "infra" / "main.parameters.json"
AZURE = ROOT / "azure.yaml"
WORKFLOWS = tuple(ROOT / ".github" / "workflows" / name for name in ("azure-dev.yml", "infra.yml"))
SECRET = ("ALERT_WEBHOOKS",)  # who knows such an address may post there
NOT_KEPT = {  # azd sets the first three in a pipeline without being asked; the deployer is a different one there
    "AZURE_ENV_NAME",
    "AZURE_LOCATION",
    "AZURE_PRINCIPAL_ID",
    "AZURE_PRINCIPAL_TYPE",
}
MARK = "      # An empty value is the default of infra/main.parameters.json.\n"


def choices(parameters: str) -> list[str]:
    named = set(re.findall(r"\$\{(\w+)", parameters))
    return sorted(named - NOT_KEPT | {*JOB_IDENTITY, *CHOICES, *GROUPS, ADDRESS})


def azure_with(text: str, names: list[str]) -> str:
    lines = "".join(f"    - {name}\n" for name in names if name not in SECRET)
    return re.sub(r"(?<=  variables:\n)(    - .*\n)*", lines, text, count=1)


def workflow_with(text: str, names: list[str]) -> str:
    kinds = {name: "secrets" if name in SECRET else "vars" for name in names}
    lines = "".join(f"      {name}: ${{{{ {kind}.{name} }}}}\n" for name, kind in kinds.items())
    return re.sub(rf"(?<={re.escape(MARK)})(      \w+: .*\n)*", lambda _: lines, text, count=1)


def main() -> None:
    names = choices(PARAMETERS.read_text(encoding="utf-8"))
    AZURE.write_text(azure_with(AZURE.read_text(encoding="utf-8"), names), encoding="utf-8")
    for path in WORKFLOWS:
        path.write_text(workflow_with(path.read_text(encoding="utf-8"), names), encoding="utf-8")


if __name__ == "__main__":
    main()
