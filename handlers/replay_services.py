"""What the handlers of replays share, made on first use."""

from dataclasses import dataclass

from core.replay.run import ReplayMeans
from handlers.services import services


@dataclass(frozen=True, slots=True)
class ReplayServices:
    """What replays of the app's stream are done with, and how many events one may have."""

    means: ReplayMeans
    most_events: int


def replay_services() -> ReplayServices:
    """The services of replays; raises as `services` does."""
    own = services()
    settings = own.settings
    means = ReplayMeans(settings.stream, own.replays, own.hub, own.transform, own.clock, settings.letters)
    return ReplayServices(means, settings.replay_most_events)
