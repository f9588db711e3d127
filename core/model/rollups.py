"""Levels of an aggregate: the same key and measures in windows of several lengths, each with its own retention."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from core.errors import InvalidTransform

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = ("staged", "staging")  # the ends of the names of staging tables


@dataclass(frozen=True, slots=True)
class Kept:
    """A length of windows, and how long they are stored after their end; a plain length keeps them for ever."""

    window: timedelta
    keep: timedelta


Length = timedelta | Kept


def window_of(length: Length) -> timedelta:
    """Return the length of windows."""
    return length.window if isinstance(length, Kept) else length


def keep_of(length: Length) -> timedelta | None:
    """Return how long windows are stored; None: for ever."""
    return length.keep if isinstance(length, Kept) else None


def check_levels(who: str, finest: Length, rollups: Mapping[str, Length]) -> None:
    """Raise InvalidTransform unless each level is built from the windows of the level before it."""
    window = window_of(finest)
    if window <= timedelta() or DAY % window:
        raise InvalidTransform(f"{who}: a day is no whole number of windows of {window}")
    _check_keep(f"{who}: window", finest)
    finer = finest
    for name, length in rollups.items():
        _check_rollup(f"{who}: rollup {name}", name, finer, length)
        finer = length


def _check_rollup(what: str, name: str, finer: Length, length: Length) -> None:
    window, below = window_of(length), window_of(finer)
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise InvalidTransform(f"{what}: a name has lower-case letters, digits and _, and is not {' or '.join(_TAKEN)}")
    if window <= below or window % below or DAY % window or window % SECOND:
        raise InvalidTransform(f"{what}: {window} is no whole number of windows of {below}, or no whole part of a day")
    _check_keep(what, length)
    kept, kept_below = keep_of(length), keep_of(finer)
    if kept is not None and (kept_below is None or kept < kept_below):
        raise InvalidTransform(f"{what}: it is kept for a shorter time than the windows that it is built from")


def _check_keep(what: str, length: Length) -> None:
    keep = keep_of(length)
    if keep is not None and keep < DAY:
        raise InvalidTransform(f"{what}: it is kept for a day at least, not for {keep}")
