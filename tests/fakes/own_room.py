"""A room of a user, in a folder: its migrations by their files' names."""

from collections.abc import Iterable
from pathlib import Path

from core.store.migrations import ENGINES
from core.transforms.loading import Room

TEXTS = {"0001_orders.sql": "CREATE TABLE parcel (parcel_id TEXT NOT NULL) STRICT;\n"}


def own_room(
    folder: Path, texts: dict[str, str] | None = None, name: str = "apps.orders", engines: Iterable[str] = ENGINES
) -> Room:
    for engine in engines:
        place = folder / name / "migrations" / engine
        place.mkdir(parents=True, exist_ok=True)
        for file, text in (TEXTS if texts is None else texts).items():
            (place / file).write_text(text, encoding="utf-8")
    return Room(name, folder / name)
