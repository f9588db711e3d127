"""A game day: the app on the local host, a hub whose clock can be set, the alarms of its watch, and its health."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

from azure.eventhub import EventData

from tests.acceptance.game_days.alarms import firing
from tests.acceptance.game_days.operator import Operator, Ran
from tests.acceptance.game_days.page import SECTIONS
from tests.acceptance.started import AT_ONCE, HUB, LOOK, OFTEN, App, MovableClock
from tests.patience import Patience

# Of an alert, which is 15 minutes in Azure: here the watch comes each second, not each minute.
WINDOW = timedelta(seconds=2.5)
SETTINGS = {
    **OFTEN,
    **AT_ONCE,
    "TASK_SCHEDULE": "* * * * * *",
    "DEAD_LETTER_ATTEMPTS": "1",
    "DEAD_LETTER_BASE_SECONDS": "0.1",
    "DEAD_LETTER_LOOK_SECONDS": "0.2",
}
LIMITS = {
    "lag_seconds": 300,
    "aggregation_lag_seconds": 3600,
    "open_letters": 0,
    "letter_seconds": 18 * 3600,
    "loss_hours": 6,
    "cap_megabytes": 4000,
}
MENDED = "tests.acceptance.game_days.mended"


@dataclass
class Day:
    """An app with a fault, and its operator. `limits` are those of the deployed alerts."""

    app: App
    clock: MovableClock
    operator: Operator
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    limits: dict[str, object] = field(default_factory=lambda: dict(LIMITS))
    others: dict[str, Callable[[list[str]], None]] = field(default_factory=dict)  # more of Azure's commands
    lost: dict[str, set[int]] = field(default_factory=dict)  # numbers without a row for good

    def start(self, **changed: str) -> None:
        """Start the app, or start it again with changed settings. Its operator finds it at the new address."""
        self.settings |= changed
        self.app.start_host(**self.settings)
        self.operator.url = self.app.address

    def unset(self, *names: str) -> None:
        """Start the app without some settings."""
        for name in names:
            self.settings.pop(name, None)
        self.start()

    def publish(self, id: str, *bodies: bytes, ago: timedelta = timedelta(0)) -> None:
        self.clock.ahead = -ago
        self.app.send(id, list(bodies))
        self.clock.ahead = timedelta(0)

    def publish_keyed(self, key: str, *bodies: bytes) -> None:
        batch = self.app.producer.create_batch(partition_key=key)
        for body in bodies:
            batch.add(EventData(body))
        self.app.producer.send_batch(batch)
        self.app.published = {one: last + 1 for one, last in self.app.emulator.end_of(HUB).items()}

    def firing(self) -> set[str]:
        since = datetime.now(UTC) - WINDOW
        watches = self.app.lines("watch")
        return firing([one for one in watches if datetime.fromisoformat(one["time"]) > since], self.limits)

    def until_it_fires(self, alarm: str) -> None:
        self.until(lambda: alarm in self.firing(), alarm)

    def until(self, holds: Callable[[], bool], what: str = "", seconds: float = 60.0) -> None:
        """Wait for a condition, while events are accounted for. The app may be down meanwhile."""
        patience = Patience(seconds)
        while not holds():
            patience.pause(lambda: (what, self.firing(), self.app.accounted()), LOOK)

    def follow(self, section: str, *parts: str, **given: str) -> list[Ran]:
        """Run the commands of a section of the runbook. With parts, only those that hold one of these texts.

        Azure's commands are carried out here: `az` on the settings and the app, `azd deploy` on the transform.
        """
        ran = []
        for command in SECTIONS[section].commands:
            if not parts or any(part in command for part in parts):
                calls = len(self.operator.azure_calls())
                ran.append(self.operator.run(command, **given))
                for call in self.operator.azure_calls()[calls:]:
                    self._carry_out(call.split())
        return ran

    def _carry_out(self, call: list[str]) -> None:
        """Do to the app as Azure does."""
        words = set(call)
        if call[:2] == ["azd", "deploy"]:
            self.start(TRANSFORM=MENDED)
        elif {"appsettings", "set"} <= words:
            self.start(**dict(each.split("=", 1) for each in call[call.index("--settings") + 1 :]))
        elif {"appsettings", "delete"} <= words:
            self.unset(*call[call.index("--setting-names") + 1 :])
        elif {"functionapp", "restart"} <= words:
            self.start()
        elif not {"appsettings", "list"} <= words:
            self.others[call[0] if call[0] != "az" else call[1]](call)

    def until_quiet(self) -> None:
        self.until(lambda: self.app.accounted() == self.app.published, "all are accounted for")

    def until_healthy(self, but: frozenset[str] = frozenset()) -> None:
        self.until_quiet()
        self.until(lambda: self.firing() <= but, "no alarm")
        self.until(lambda: self.health() == 200, "health")
        books = self.app.request("api/status")
        assert books["ledger_balanced"] is True
        assert [stop for one in books["partitions"] for stop in one["stops"]] == []
        self.app.assert_each_number_once(self.lost, lost="in some way")

    def post(self, path: str, **body: object) -> None:
        self.app.request(path, {"order_id": str(uuid.uuid4()), **body})

    def health(self) -> int:
        """Return the status of GET /api/health/ledger. 0 for an app that is down."""
        try:
            self.app.request("api/health/ledger")
        except HTTPError as refused:
            return refused.code
        except OSError:
            return 0
        return 200
