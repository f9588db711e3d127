"""Read the query of a management request: names match in any case, and an unreadable value counts as not given."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from local.functions_host.durable.instances import InstanceFilter, Status

DEFAULT_PAGE = 100


class QueryFault(Exception):
    """The request is refused with `status` and this text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Query:
    """Reads the values as the extension does."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in values.items()}

    def text(self, name: str) -> str | None:
        """Return a value unchanged, or None."""
        return self._values.get(name.lower())

    def claims(self, name: str, *, default: bool = False) -> bool:
        """Return True or False; any other value is the default."""
        return {"true": True, "false": False}.get((self.text(name) or "").lower(), default)

    def instant(self, name: str) -> datetime | None:
        """Return an instant, or None; without a zone it is UTC."""
        try:
            instant = datetime.fromisoformat(self.text(name) or "")
        except ValueError:
            return None
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant

    def statuses(self) -> Sequence[Status]:
        """Return the known statuses of a list."""
        known = {status.value.lower(): status for status in Status}
        wanted = (self.text("runtimeStatus") or "").lower().split(",")
        return [known[each] for each in wanted if each in known]

    def instances(self, after: str) -> InstanceFilter:
        """Return the requested selection of instances."""
        top = self.text("top") or ""
        return InstanceFilter(
            prefix=self.text("instanceIdPrefix") or "",
            created_from=self.instant("createdTimeFrom"),
            created_to=self.instant("createdTimeTo"),
            statuses=self.statuses(),
            after=after,
            top=int(top) if top.isdigit() and int(top) > 0 else DEFAULT_PAGE,
        )

    def refuse(self, *names: str) -> None:
        """Raise QueryFault for the first of the names that is given."""
        for name in names:
            if name.lower() in self._values:
                raise QueryFault(501, f"{name} is not emulated by the local functions host")
