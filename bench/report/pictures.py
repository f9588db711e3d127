"""The pictures of three parts: peers beside each other, the way of an event, and a long run over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.figures import Table, cell_text
from bench.report.results import LARGE, Results
from bench.report.svg import Bar, Line, bars, lines, stacked

RATE, LOST, DOUBLED = "events/s", "lost", "doubled"  # how the headings of columns end
TIME, CURVES = "s", ("lag, s", "workers, MB", "emulator, MB")  # headings of the columns of a long run
WAY = "CPU "  # how the names of its tables begin


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: its file, its heading, its text with the figures for those who do not see it, and its SVG."""

    name: str
    heading: str
    text: str
    svg: str


def pictures_of(results: Results) -> dict[str, Picture]:
    """Return the picture of each part whose tables have what it shows. The large sizes come first for `size`."""
    found: dict[str, Picture] = {}
    for part in (part for size in ("", LARGE) for part in results.get(size, [])):
        draw = _DRAWN.get(part.part)
        picture = draw(part.tables) if draw else None
        if picture and (part.part == "size" or part.part not in found):
            found[part.part] = picture
    return found


def _peers(tables: Sequence[Table]) -> Picture | None:
    table = next((one for one in tables if _columns(one, RATE)), None)
    if table is None:
        return None
    (rate, *_) = _columns(table, RATE)
    cells = [(cell_text(row[0]), row[rate]) for row in table.rows]
    given = [_peer(tables, name, cell) for name, cell in cells if isinstance(cell, int | float)]
    text = "Events per second of each peer, with the events that it lost and doubled: "
    text += "; ".join(f"{bar.name} {bar.text}" for bar in given)
    heading = "Events per second; orange: it lost or doubled events"
    return Picture("peers.svg", heading, text, bars(heading, text, given))


def _peer(tables: Sequence[Table], name: str, rate: float) -> Bar:
    counts = {word: _count(tables, name, word) for word in (LOST, DOUBLED)}
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count is not None)
    return Bar(name, rate, f"{rate:,.0f}; {said}".removesuffix("; "), any(counts.values()))


def _way(tables: Sequence[Table]) -> Picture | None:
    given = {table.name: _segments(table) for table in tables if table.name.startswith(WAY)}
    if not given:
        return None
    said = (f"{name}: {', '.join(f'{bar.name} {bar.text}' for bar in bars)}" for name, bars in given.items())
    text = f"CPU per event in each stage. {'; '.join(said)}"
    heading = "Where the time of an event goes"
    return Picture("way.svg", heading, text, stacked(heading, text, given))


def _segments(table: Table) -> list[Bar]:
    cells = ((cell_text(row[0]), row[1]) for row in table.rows)
    return [Bar(name, cell, f"{cell:.3g} µs") for name, cell in cells if isinstance(cell, int | float)]


def _size(tables: Sequence[Table]) -> Picture | None:
    table = next((one for one in tables if {TIME, *CURVES} <= set(one.columns)), None)
    if table is None:
        return None
    given = []
    for name in CURVES:
        cells = ((row[table.columns.index(TIME)], row[table.columns.index(name)]) for row in table.rows)
        points = [(x, y) for x, y in cells if isinstance(x, int | float) and isinstance(y, int | float)]
        given.append(Line(name if name.startswith("lag") else f"memory of the {name}", points))
    text = "Over the run: " + "; ".join(f"{line.name}, at most {line.most:,.4g}" for line in given)
    heading = "Lag and memory over a long run"
    return Picture("size.svg", heading, text, lines(heading, text, given))


def _columns(table: Table, word: str) -> list[int]:
    return [place for place, heading in enumerate(table.columns) if heading.removesuffix(" again").endswith(word)]


def _count(tables: Sequence[Table], name: str, word: str) -> int | None:
    """Return the sum of a peer's counts in all columns whose heading ends with the word, or None without any."""
    cells = [row[place] for table in tables for place in _columns(table, word) for row in table.rows if row[0] == name]
    counts = [cell for cell in cells if isinstance(cell, int)]
    return sum(counts) if counts else None


_DRAWN: dict[str, Callable[[Sequence[Table]], Picture | None]] = {"peers": _peers, "way": _way, "size": _size}
