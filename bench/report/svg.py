"""Three kinds of charts as SVG: bars, stacked bars, and lines over time, readable in light and dark.

The text is the same for the same values, so that a test can compare it. A drawing library's text changes with its
version.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

WIDTH, MARGIN, LINE = 860, 16, 22
LETTER = 7.2  # the width of a letter, at most on average
PANEL = 90
COLOURS = (  # that people with a colour vision deficiency tell apart, in neighbouring segments
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    *("#8a8a8a", "#b3a100", "#7b5ea7", "#a05a2c", "#3f8f8f", "#c24a6b"),
)
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600; font-size: 15px } .faint { fill: #59636e }
.ground { fill: #ffffff } .line { fill: none; stroke: #0072b2; stroke-width: 2 } .axis { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .ground { fill: #0d1117 } .line { stroke: #56b4e9 }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its name, its length, and the words after it. One that is marked has a different colour."""

    name: str
    value: float
    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A curve over time: its name with the unit, and points of seconds and values."""

    name: str
    points: Sequence[tuple[float, float]]

    @property
    def most(self) -> float:
        """The largest value."""
        return max((value for _, value in self.points), default=0)


def bars(title: str, alt: str, given: Sequence[Bar]) -> str:
    """Return horizontal bars, one below the other."""
    most = max((bar.value for bar in given), default=0) or 1
    left = MARGIN + LETTER * max((len(bar.name) for bar in given), default=0)
    longest = max(80, WIDTH - MARGIN - 18 - left - LETTER * max((len(bar.text) for bar in given), default=0))
    drawn = []
    for place, bar in enumerate(given):
        y, width = 48 + place * 30, max(1.0, longest * bar.value / most)
        drawn.append(_text(left, y + 15, bar.name, 'text-anchor="end"'))
        drawn.append(_rect(left + 10, y, width, 20, COLOURS[5 if bar.is_marked else 0]))
        drawn.append(_text(left + 18 + width, y + 15, bar.text))
    return _document(title, alt, 48 + 30 * len(given) + MARGIN, drawn)


def stacked(title: str, alt: str, given: Mapping[str, Sequence[Bar]]) -> str:
    """Return a bar of segments for each name, and a legend in which a segment of the same name has the same colour."""
    longest = max((_whole(segments) for segments in given.values()), default=0) or 1
    names = list(dict.fromkeys(bar.name for segments in given.values() for bar in segments))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    drawn, y = [], 56.0
    for name, segments in given.items():
        x = float(MARGIN)
        drawn.append(_text(x, y, name))
        for bar in segments:
            width = (WIDTH - 2 * MARGIN) * max(0.0, bar.value) / longest
            drawn.append(_rect(x, y + 8, width, 30, colours[bar.name]))
            x += width
        y += 66
    for place, name in enumerate(names):
        said = " / ".join(bar.text for segments in given.values() for bar in segments if bar.name == name)
        left, top = MARGIN + (place % 2) * (WIDTH // 2), y - 12 + (place // 2) * LINE
        drawn += [_rect(left, top, 12, 12, colours[name]), _text(left + 20, top + 11, f"{name}: {said}")]
    return _document(title, alt, int(y) + LINE * ((len(names) + 1) // 2) + MARGIN // 2, drawn)


def _whole(segments: Sequence[Bar]) -> float:
    return sum(max(0.0, bar.value) for bar in segments)


def lines(title: str, alt: str, given: Sequence[Line]) -> str:
    """Return a panel for each curve, all over the same seconds. Values begin at 0."""
    latest = max((seconds for line in given for seconds, _ in line.points), default=0) or 1
    drawn = []
    for place, line in enumerate(given):
        top = 66 + place * (PANEL + 46)
        most = line.most or 1
        across, foot = WIDTH - 2 * MARGIN, top + PANEL
        placed = ((MARGIN + across * seconds / latest, foot - PANEL * value / most) for seconds, value in line.points)
        drawn.append(_text(MARGIN, top - 8, f"{line.name}, at most {line.most:,.4g}"))
        drawn.append(f'<line class="axis" x1="{MARGIN}" y1="{foot}" x2="{WIDTH - MARGIN}" y2="{foot}"/>')
        drawn.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>')
        drawn.append(_text(WIDTH - MARGIN, foot + 15, f"{latest:,.0f} s", 'class="faint" text-anchor="end"'))
    return _document(title, alt, 66 + len(given) * (PANEL + 46), drawn)


def _document(title: str, alt: str, height: int, drawn: Iterable[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f"aria-label={quoteattr(alt)}>",
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(alt)}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
            _text(MARGIN, 26, title, 'class="head"'),
            *drawn,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " * bool(more)}{more}>{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}"/>'
