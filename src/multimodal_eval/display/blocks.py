"""What a display consists of. Blocks hold data; a renderer writes them. Every text is untrusted, and escaped there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup

from multimodal_eval.core.display import printed
from multimodal_eval.core.figure import Figure

__all__ = [
    "Block",
    "Card",
    "Cell",
    "Chart",
    "Drawing",
    "FigureRow",
    "Figures",
    "Finding",
    "Folded",
    "Gallery",
    "Grid",
    "GridCell",
    "GridRow",
    "Level",
    "Lines",
    "Notes",
    "Row",
    "Series",
    "Strong",
    "Table",
    "Text",
    "Tone",
    "Verdict",
]

Tone = Literal["", "good", "bad", "warning", "quiet", "strong"]
Level = Literal["warning", "note"]
SCORED = "scored"
DIGITS = 4


@dataclass(frozen=True)
class Text:
    """A paragraph. `lead` is set in bold in front of it. A code is on a line of its own, and never wrapped."""

    text: str
    lead: str = ""
    tone: Tone = ""
    is_code: bool = False


@dataclass(frozen=True)
class Drawing:
    """SVG or an image made by this package. Only HTML has it."""

    markup: Markup


@dataclass(frozen=True)
class Lines:
    """A cell with several lines; `tones` are colours of the drawing beside them."""

    lines: Sequence[str]
    tones: Sequence[str] = ()
    is_strong: bool = False  # the first line


@dataclass(frozen=True)
class Strong:
    """A cell in bold, such as the best value of a row."""

    text: str


Cell = str | Strong | Lines | Drawing


@dataclass(frozen=True)
class Row:
    """A row of a table; `is_axis` rows belong to drawings only. `tone` is that of its last cell."""

    cells: Sequence[Cell]
    is_strong: bool = False
    is_axis: bool = False
    is_quiet: bool = False
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    """Texts. The first `left` columns are names, and the others are aligned to the right. `caption` explains them.

    A narrow terminal omits the `optional` columns, in this order. Numbers with intervals are `Figures`.
    """

    heads: Sequence[str]
    rows: Sequence[Row]
    left: int = 1
    title: str = ""
    caption: str = ""
    optional: Sequence[str] = ()
    has_lines: bool = False  # between the rows
    is_heat_map: bool = False  # pages colour the counts


@dataclass(frozen=True)
class FigureRow:
    """A figure of a table. `names` replace its name; `before` and `after` are further cells around it."""

    figure: Figure
    names: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    remark: str = ""  # beside the name
    is_strong: bool = False
    is_main: bool = False  # the headline
    tone: Tone = ""  # good or bad: the figure is better or worse than the baseline, beyond chance
    series: int = 1  # the number of the run, which gives its drawing a colour


@dataclass(frozen=True)
class Figures:
    """Numbers with their intervals, one per row: the only way to show them.

    Under each figure follow its calibrated value and its parts. `heads` are those of the names. The value of a
    difference has a sign, and each other figure is about the `baseline`, if there is one.
    """

    rows: Sequence[FigureRow]
    heads: Sequence[str] = ("metric",)
    before: Sequence[str] = ()  # heads of further cells
    after: Sequence[str] = ()
    value: str = "score"  # the head of the value
    title: str = ""
    caption: str = ""
    baseline: Figure | None = None
    is_difference: bool = False
    with_parts: bool = True
    counts: str = SCORED  # what `n_scored` of the figures counts
    interval: str = ""  # the head of the intervals, if they are not of the usual level
    digits: int = DIGITS

    @property
    def figures(self) -> list[Figure]:
        """Every figure that is shown."""
        listed = [] if self.baseline is None else [self.baseline]
        for row in self.rows:
            listed += [row.figure, *([] if row.figure.calibrated is None else [row.figure.calibrated])]
            listed += row.figure.parts.values() if self.with_parts else ()
        return listed


@dataclass(frozen=True)
class GridCell:
    """A figure of a grid with its mark, or a text instead. `link` is the page of the figure, if there are pages."""

    figure: Figure | None = None
    text: str = ""
    mark: str = ""
    more: str = ""  # a line below the figure
    is_strong: bool = False
    link: str = ""


@dataclass(frozen=True)
class GridRow:
    """The cells of one name, in the order of the columns."""

    name: str
    cells: Sequence[GridCell]


@dataclass(frozen=True)
class Grid:
    """Figures of names by columns, such as models by tasks: a value per cell, with its interval below.

    `below` are lines under the heads, such as the number of samples. Values are multiplied by `scale` when they are
    shown to people. `errors` chooses what is below a value; counts of cells that are not complete are always there.
    """

    corner: str
    heads: Sequence[str]
    rows: Sequence[GridRow]
    below: Sequence[Sequence[str]] = ()
    title: str = ""
    caption: str = ""
    is_difference: bool = False
    errors: Literal["interval", "stderr", "none"] = "interval"
    digits: int = DIGITS
    scale: float = 1.0

    @property
    def figures(self) -> list[Figure]:
        """Every figure that is shown."""
        return [cell.figure for row in self.rows for cell in row.cells if cell.figure is not None]


@dataclass(frozen=True)
class Finding:
    """A warning or a note: what it says of `count` of `total`, about which metrics or runs, and why it matters."""

    what: str
    code: str = ""
    level: Level = "warning"
    about: Sequence[str] = ()
    count: int | None = None
    total: int | None = None
    why: str = ""
    examples: Sequence[str] = ()
    figure: Figure | None = None
    runs: Sequence[str] = ()  # of several, those with the finding

    @property
    def sentence(self) -> str:
        """The same in every output."""
        words = [", ".join(self.runs)] if self.runs else []
        words += [", ".join(map(printed, self.about))] if self.about else []
        if self.count is not None and self.total is not None:
            share = f" ({100 * self.count / self.total:.1f}%)" if self.total else ""
            words.append(f"{self.count:,} of {self.total:,}{share}")
        return ": ".join([*words, self.what])

    @property
    def details(self) -> list[str]:
        """What follows the sentence: why it matters, and examples."""
        examples = [f"examples: {', '.join(self.examples)}"] if self.examples else []
        return [*self.why.splitlines(), *examples]


@dataclass(frozen=True)
class Verdict:
    """The answer to a question in one sentence, and what it rests on."""

    sentence: str
    question: str = ""
    tone: Tone = ""
    evidence: Sequence[Finding] = ()


@dataclass(frozen=True)
class Series:
    """Figures of the same kind in a chart, such as those of a run. `at` are their places, for a curve."""

    name: str
    figures: Sequence[Figure]
    at: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """Figures on one scale: dots with intervals, bars of shares, a curve over `at`, or steps that start `at`."""

    kind: Literal["dots", "bars", "curve", "waterfall"]
    series: Sequence[Series]
    title: str = ""
    unit: str = ""
    with_origin: bool = False
    counts: str = SCORED


@dataclass(frozen=True)
class Notes:
    """Warnings without data, one per line."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader opens. `in_text` says whether outputs that cannot fold show them."""

    summary: str
    blocks: Sequence[Block]
    in_text: bool = False


@dataclass(frozen=True)
class Card:
    """A sample of a gallery: images, and texts with their names."""

    title: str
    images: Sequence[Drawing] = ()
    fields: Sequence[tuple[str, str]] = ()
    scores: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Gallery:
    """Samples side by side."""

    cards: Sequence[Card]


Block = Text | Figures | Grid | Table | Finding | Verdict | Chart | Notes | Folded | Gallery | Drawing
