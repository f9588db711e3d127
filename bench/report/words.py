"""The results as Markdown: blocks that stand between two comments of a page."""

from collections.abc import Iterable, Mapping

from bench.figures import Cell, Figure, Table, cell_text
from bench.report.pictures import Picture
from bench.report.results import LARGE, SERVER, PartResult, Results

VERDICTS = {True: ", met", False: ", **missed**", None: ""}
RATE = "events/s"
SHARE = "events/s of our trigger, of a function "  # the beginning of the figures of `host`
TABLED = "peers"  # the part whose tables readers choose by
BUSY = 0.3  # cores: a part beside more other work than this has the times of a shared machine


def front(results: Results, pictures: Mapping[str, Picture], images: str) -> str:
    """Return the front page's words: our trigger beside bare functions, what each peer lost and doubled, the rates in a
    sentence, the targets met."""
    parts = [part for found in results.values() for part in found]
    if not parts:
        return "Nothing was measured yet: `make bench` does it."
    judged = [figure for part in parts for figure in part.figures if figure.met is not None]
    count = sum(bool(figure.met) for figure in judged)
    met = f"{count} of {len(judged)} targets are met, measured on {_machines(parts)}."
    peers = next((part for part in results.get("", []) if part.part == "peers"), None)
    tables = peers.tables if peers else ()
    lost = [markdown(table) for table in tables if _counts_losses(table)]
    return "\n\n".join([*_beside_functions(parts), *lost, " ".join([*_rates(tables), met]), *_circumstances(parts)])


def _beside_functions(parts: Iterable[PartResult]) -> list[str]:
    """Say how many times the rate of each bare function our trigger has."""
    figures = [one for part in parts for one in part.figures if one.name.startswith(SHARE)]
    shares = [f"{one.value:.2f} times that of a function {one.name.removeprefix(SHARE)}" for one in figures]
    return [f"The rate of our trigger on a Functions host is {'; '.join(shares)}."] if shares else []


def _counts_losses(table: Table) -> bool:
    return "lost" in " ".join(table.columns)


def _rates(tables: Iterable[Table]) -> list[str]:
    """Say how many events a second each of our consumers takes, and the fastest peer."""
    rates = [
        (str(row[0]), float(cell))
        for table in tables
        if RATE in table.columns
        for row in table.rows
        if isinstance(cell := row[table.columns.index(RATE)], (int, float))
    ]
    ours = [f"{rate:,.0f} ({name})" for name, rate in rates if name.startswith("ours")]
    others = [one for one in rates if not one[0].startswith("ours")]
    if not ours or not others:
        return []
    name, rate = max(others, key=lambda one: one[1])
    return [
        f"Hubledger takes {' and '.join(ours)} events/s, the fastest of the peers {_plain(f'{rate:,.0f} ({name})')}."
    ]


def targets(results: Results, pictures: Mapping[str, Picture], images: str) -> str:
    """Return the table of rates, and each figure with a target, at the largest size of its part."""
    parts = [part for found in results.values() for part in found]
    if not parts:
        return "Nothing was measured yet: `make bench` does it."
    measured = [f"Measured on {_machines(parts)}.", *_circumstances(parts)]
    here = _chosen(_largest(results), pictures, images)
    server = _chosen(results.get(SERVER, []), {}, images)
    return "\n\n".join([*measured, *here, *(["### With the store on SQL Server", *server] if server else [])])


def _largest(results: Results) -> list[PartResult]:
    """Return the result of each part on the embedded store: of the large size, where it was measured."""
    found = {part.part: part for size in ("", LARGE) for part in results.get(size, [])}
    return [found[name] for name in sorted(found)]


def _chosen(parts: Iterable[PartResult], pictures: Mapping[str, Picture], images: str) -> list[str]:
    rows: list[tuple[str, ...]] = []
    blocks: list[str] = []
    for part in parts:
        name = f"`{part.part}`{_sizes(part)}"
        for figure in (one for one in part.figures if one.target):
            rows.append((name, figure.name.removeprefix(f"{part.part}, "), *_measured(figure)))
            name = ""
        if part.part == TABLED:  # the losses are on the front page
            blocks += [markdown(table) for table in part.tables if not _counts_losses(table)]
        blocks += [_shown(pictures[part.part], images)] if part.part in pictures else []
    return [*blocks, *([_lined(("part", "figure", "measured", "target"), rows)] if rows else [])]


def markdown(table: Table) -> str:
    """Return a table below its heading in bold."""
    lines = _lined(table.columns, (map(cell_text, row) for row in table.rows))
    return f"**{_plain(table.name)}**\n\n{lines}"


def _sizes(part: PartResult) -> str:
    return "".join(f", `{name}={value}`" for name, value in part.settings.items())


def _measured(figure: Figure) -> tuple[str, str]:
    return f"{_number(figure.value)} {figure.unit}", f"{figure.target}{VERDICTS[figure.met]}"


def _number(value: Cell) -> str:
    if isinstance(value, float) and value == value and abs(value) < 1000:
        return f"{value:.4g}"
    return cell_text(value) if value == value else "-"


def _lined(columns: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    rule = "|".join(["", *("---" for _ in columns), ""])
    return "\n".join([_row(columns), rule, *map(_row, rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _shown(picture: Picture, images: str) -> str:
    return f"![{picture.heading}]({images}/{picture.name})"


def _machines(parts: list[PartResult]) -> str:
    kinds = {f"{part.machine['cores']} cores ({part.machine['processor']})" for part in parts}
    days = sorted({part.made_at[:10] for part in parts})
    return f"{' and '.join(sorted(kinds))}, {' to '.join(dict.fromkeys((days[0], days[-1])))}"


def _circumstances(parts: list[PartResult]) -> list[str]:
    busy = [part.part for part in parts if (part.others or 0) > BUSY]
    dirty = [part.part for part in parts if part.is_dirty]
    failed = [part.part for part in parts if part.fault]
    said = (
        (failed, "These parts ended early"),
        (busy, "Other work shared the machine with these parts, and made them slower"),
        (dirty, "The code of these parts had changes beyond its commit"),
    )
    return [f"{text}: {', '.join(f'`{name}`' for name in dict.fromkeys(names))}." for names, text in said if names]
