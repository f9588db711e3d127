import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from core.settings import read_settings
from handlers.web.requests import LARGEST_BODY
from local.functions_host.json_sections import parse_time_span
from tests.infra.bicep import read_text
from tests.repo.product import ROOT

BY_KEY, BY_IDENTITY = {"EVENTHUB", "LAKE_CONNECTION"}, {"EVENTHUB__fullyQualifiedNamespace"}
BY_THE_PLATFORM = {"WEBSITE_AUTH_ENABLED"}  # nobody sets it: it says that App Service authentication is on
BODY_LIMIT = "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"
THREADS = "PYTHON_THREADPOOL_THREAD_COUNT"
LINES = "AzureFunctionsJobHost__logging__logLevel__Function"  # host.json hides them, because Azure has them already
OF_THE_HOST_LOCALLY = {"FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsStorage", BODY_LIMIT, THREADS, LINES}

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLE: dict[str, str] = json.loads((ROOT / "local.settings.example.json").read_text(encoding="utf-8"))["Values"]
CHOSEN: dict[str, str] = json.loads((ROOT / "infra" / "settings.json").read_text(encoding="utf-8"))
HOST_JSON: dict[str, Any] = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))


def in_code() -> set[str]:
    source = "".join((ROOT / "core" / one).read_text(encoding="utf-8") for one in ("settings.py", "model/policies.py"))
    timers = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "handlers").glob("*.py"))
    schedules = re.findall(r'os\.environ\.get\("(\w+)"\)', timers)
    return {*re.findall(r'"([A-Z][A-Z_]+(?:__\w+)?)"', source), *schedules} - BY_THE_PLATFORM


def in_page(heading: str) -> dict[str, str]:
    section = re.split(r"^##? ", PAGE, flags=re.MULTILINE)
    table = next(part for part in section if part.startswith(heading))
    rows = re.findall(r"^\| `([\w.]+)` \|([^|\n]*)\|", table, flags=re.MULTILINE)
    return {name: cell.strip().strip("`") for name, cell in rows}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}".lstrip("."))
    else:
        yield path, value


FUNCTION = read_text("function", (ROOT / "infra" / "app" / "function.bicep").read_text(encoding="utf-8"))
OF_THE_APP = in_page("Settings\n") | in_page("Aggregation on Spark\n")
OF_THE_HOST = in_page("Settings of the host\n")


def test_the_page_the_example_and_the_templates_have_the_settings_of_the_code() -> None:
    code = in_code()
    assert {"STORE_CONNECTION", "EVENTHUB_NAME", "TRANSFORM", *BY_KEY, *BY_IDENTITY} <= code
    assert set(OF_THE_APP) == code
    assert set(EXAMPLE) == (code - BY_IDENTITY) | OF_THE_HOST_LOCALLY
    main = read_text("main.bicep", (ROOT / "infra" / "main.bicep").read_text(encoding="utf-8"))
    both = [*main.var("hubSettings").parts, *main.var("wiredSettings").parts]
    wired, host = set().union(*both), set(FUNCTION.var("hostSettings")).union(*FUNCTION.var("hubIdentity").parts)
    assert wired | set(CHOSEN) == code - {"LAKE_CONNECTION"}
    assert wired & set(CHOSEN) == host & code == set()
    assert set(OF_THE_HOST) == host


def test_the_host_lets_in_a_body_that_the_api_refuses_and_has_a_thread_for_each_partition() -> None:
    limit, host = EXAMPLE[BODY_LIMIT], FUNCTION.var("hostSettings")
    assert int(limit) > LARGEST_BODY
    assert host[BODY_LIMIT] == limit
    assert OF_THE_HOST[BODY_LIMIT].startswith(f"{limit}`")
    assert f"{LARGEST_BODY:,}" in OF_THE_HOST[BODY_LIMIT]
    assert {host[THREADS], EXAMPLE[THREADS], OF_THE_HOST[THREADS][:2]} == {"32"}  # of the largest common hub


def test_chosen_values_and_the_page_tell_the_defaults_of_the_code_and_every_value_of_host_json() -> None:
    required = {name: value for name, value in EXAMPLE.items() if name not in CHOSEN}
    assert read_settings(EXAMPLE) == read_settings(required) == read_settings({**required, **CHOSEN})
    assert {name: OF_THE_APP[name] for name in CHOSEN} == CHOSEN
    assert in_page("host.json\n") == {path: str(value) or "empty" for path, value in leaves(HOST_JSON)}


def test_an_idle_queue_of_durable_functions_is_read_every_ten_seconds() -> None:
    longest = HOST_JSON["extensions"]["durableTask"]["storageProvider"]["maxQueuePollingInterval"]
    assert timedelta(0) < parse_time_span(longest) <= timedelta(seconds=10)
