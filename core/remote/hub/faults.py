"""What the SDK reports, by what it means: a setting that has to change, or a hub that is out of reach."""

from core.errors import HubRefused, HubUnreachable
from core.settings import Settings

_REFUSED = ("notfound", "not-found", "unauthorized", "404", "401")


def named(settings: Settings, group: str, setting: str, error: Exception) -> HubRefused | HubUnreachable:
    """The fault of a link to a consumer group, in one line; when it is refused, it begins with the setting's name."""
    text = f"{settings.event_hub}, consumer group {group}: {first_line(error)}"
    refused = any(word in str(error).lower() for word in _REFUSED)
    return HubRefused(f"{setting}: {text}") if refused else HubUnreachable(text)


def first_line(error: Exception) -> str:
    """What an error says first; its type when it says nothing."""
    return (str(error) or type(error).__name__).splitlines()[0]
