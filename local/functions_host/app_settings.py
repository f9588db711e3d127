"""Read the app's settings: the environment wins over `local.settings.json`. %NAME% in a binding is a setting.

Source of the rules: Azure Functions Core Tools (`func start`); `ConnectionStrings` and `Host` of the file are not read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLACEHOLDER = re.compile(r"%([^%]+)%")


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings by name; `from_file` holds those that only the file has."""

    values: Mapping[str, str]
    from_file: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return the text of a setting, or None when it is unset or empty."""
        return self.values.get(name) or None

    def expand(self, text: str, where: str, faults: list[str]) -> str:
        """Replace each %NAME% by its setting; add one line to `faults` for each that is unset."""

        def value_of(found: re.Match[str]) -> str:
            value = self.get(found[1])
            if value is None:
                faults.append(f"{where}: setting {found[1]} is not set (the binding says {found[0]})")
            return value or ""

        return PLACEHOLDER.sub(value_of, text)

    def is_disabled(self, function_name: str) -> bool:
        """Return True when the setting `AzureWebJobs.<function>.Disabled` is true or 1."""
        return (self.get(f"AzureWebJobs.{function_name}.Disabled") or "").lower() in ("true", "1")


def read_app_settings(directory: Path, environment: Mapping[str, str], faults: list[str]) -> AppSettings:
    """Read the settings of the app in `directory`; the file may be missing. Add a line to `faults` for each error."""
    file_values = _read_values(directory / "local.settings.json", faults)
    from_file = {name: value for name, value in file_values.items() if name not in environment}
    return AppSettings({**from_file, **environment}, from_file)


def _read_values(path: Path, faults: list[str]) -> dict[str, str]:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        faults.append(f"{path.name}: is not JSON: {error}")
        return {}
    if not isinstance(content, dict) or not isinstance(content.get("Values", {}), dict):
        faults.append(f'{path.name}: must be an object with "Values", an object of texts')
        return {}
    if content.get("IsEncrypted"):
        faults.append(f"{path.name}: IsEncrypted: encrypted settings cannot be read")
        return {}
    return _checked_texts(content.get("Values", {}), path.name, faults)


def _checked_texts(values: dict[str, object], file_name: str, faults: list[str]) -> dict[str, str]:
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    faults.extend(f"{file_name}: Values.{name}: must be a text" for name in values if name not in texts)
    return texts
