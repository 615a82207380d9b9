"""Every block in every renderer: numbers have counts, interval and direction, and a finding has one wording.

The values, limits and counts of each figure are unlike all others, so that each must be missing in the output.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import get_args

import msgspec
import pytest
from markupsafe import Markup

from multimodal_eval.core.csv_cells import csv_lines
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import (
    Block,
    Card,
    Chart,
    Drawing,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Gallery,
    Grid,
    GridCell,
    GridRow,
    Lines,
    Notes,
    Row,
    Series,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.renderer import DISPLAYS, FORMATS, blocks_of, rendered, renderer_of
from tests.display.small_results import small_results

NUMBERS = count(1)
HOSTILE = "<script>x</script> \\input{y} | a_b [z](q) *w* $5 \x1b[31m\u202e%&"


def figure(name="m", direction="higher", **more):
    number = next(NUMBERS)
    ends = 0.2 + number / 1000, 0.1 + number / 1000, 0.3 + number / 1000
    return Figure(
        ends[0], 0.05, ends[1], ends[2], f"95% t interval, {number} samples",
        n_scored=1000 + number, n_total=2000 + number, name=name, direction=direction, **more,
    )  # fmt: skip


def blocks(text):
    """One block of every kind, with the text in each of its fields."""
    whole = figure(text, "lower", parts={text: figure(text)}, calibrated=figure(text, labels=77))
    finding = Finding(text, text, "warning", [text], 3, 9, text, [text], figure(text))
    row = FigureRow(whole, before=[text], after=[text], remark=text, is_main=True, tone="bad")
    return {
        Text: Text(text, text, "warning"),
        Figures: Figures([row, FigureRow(figure(text))], (text,), (text,), (text,), text, text, text, figure(text)),
        Grid: Grid(
            text,
            [text, text],
            [
                GridRow(
                    text, [GridCell(figure(text, "lower"), mark="★", more=text, is_strong=True), GridCell(text=text)]
                )
            ],
            [[text, text], [text]],
            text,
            text,
        ),
        Table: Table([text, text], [Row([text, Lines([text, text])], is_strong=True)], title=text, caption=text),
        Finding: finding,
        Verdict: Verdict(text, text, "good", [finding]),
        Chart: Chart("dots", [Series(text, [figure(text), figure(text, "lower")])], text, text),
        Notes: Notes([text]),
        Folded: Folded(text, [Text(text), Figures([FigureRow(figure(text))])], in_text=True),
        Gallery: Gallery([Card(text, fields=[(text, text)], scores=[(text, "0.5")], remarks=[text])]),
        Drawing: Drawing(Markup("<svg></svg>")),
    }


def figures_in(value):
    """Every figure inside a block."""
    if isinstance(value, Figure):
        yield value
        yield from figures_in([value.calibrated, *value.parts.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from figures_in(each)
    elif isinstance(value, (*get_args(Block), FigureRow, GridCell, GridRow, Series)):
        yield from figures_in([getattr(value, name) for name in value.__dataclass_fields__])


def plain(text, format_):
    """The words of an output: without elements, escapes and the width of a table."""
    if format_ == "html":
        text = Markup(re.sub(r"<svg.*?</svg>", " ", text)).striptags()
    for command, sign in {"\\dots{}": "…", "$\\downarrow$": "↓", "$-$": "-", "$\\pm$": "±", "{}": ""}.items():
        text = text.replace(command, sign)
    return re.sub(r"\s+", " ", re.sub(r"\\(.)", r"\1", text))


def values_in(content):
    """Every value of a JSON document."""
    if isinstance(content, dict | list):
        for each in content.values() if isinstance(content, dict) else content:
            yield from values_in(each)
    else:
        yield content


def shows(text, each, format_, sign="", digits=4):
    """What of a figure is missing in the output."""
    if format_ == "json":
        known = set(values_in(json.loads(text)))
        fields = ("value", "low", "high", "n_scored", "n_total", "direction", "method")
        return [f"{name} {getattr(each, name)}" for name in fields if getattr(each, name) not in (None, *known)]
    words = plain(text, format_)
    wanted = [f"{each.labels:,} label"] if each.labels else []
    if not wanted and each.n_scored is not None:
        wanted = [f"{each.n_scored:,}" + ("" if each.n_total is None else f" / {each.n_total:,}")]
    wanted += [] if each.value is None else [f"{each.value:{sign}.{digits}f}"]
    wanted += [] if each.low is None else [f"{each.low:{sign}.{digits}f} … {each.high:{sign}.{digits}f}"]
    missing = [want for want in wanted if want not in words]
    lower = "↓" in words if each.direction == "lower" else True
    told = each.direction is None or ("is better" in words and lower)
    return missing + ([] if told else [f"direction {each.direction}"])


def results_faults(blocks, format_):
    """What the output of real results does not show: figures of tables and charts, and the sentences of findings."""
    output = rendered(blocks, format_)
    words = plain(output, format_).replace("~%", " %")
    missing = []
    for block in flattened(blocks):
        if isinstance(block, Figures):
            sign = "+" if block.is_difference else ""
            missing += [fault for each in block.figures for fault in shows(output, each, format_, sign, block.digits)]
        elif isinstance(block, Grid):
            missing += grid_faults(output, block, format_)
        elif isinstance(block, Chart):
            missing += [fault for each in figures_in(block) for fault in shows(output, each, format_)]
        elif isinstance(block, Finding | Verdict) and plain(block.sentence, "") not in words.replace("$-$", "-"):
            missing.append(block.sentence)
    return missing


def times(each, scale):
    """A figure as people see it."""
    ends = {name: getattr(each, name) for name in ("value", "low", "high")}
    return msgspec.structs.replace(each, **{name: end if end is None else end * scale for name, end in ends.items()})


def grid_faults(output, block, format_):
    """The same of a grid, in which the counts of complete figures are those of the column."""
    counts = {"n_scored": None, "n_total": None}
    scaled = [each if format_ == "json" else times(each, block.scale) for each in block.figures]
    shown = [
        each if each.n_scored != each.n_total or format_ == "json" else msgspec.structs.replace(each, **counts)
        for each in scaled
    ]
    sign = "+" if block.is_difference else ""
    return [fault for each in shown for fault in shows(output, each, format_, sign, block.digits)]


def flattened(blocks):
    for block in blocks:
        yield block
        if isinstance(block, Folded) and block.in_text:
            yield from flattened(block.blocks)


def faults(format_, text="caption"):
    missing = []
    for kind, block in blocks(text).items():
        output = rendered([block], format_)
        for each in figures_in(block):
            missing += [f"{kind.__name__}: {want}" for want in shows(output, each, format_)]
    return missing


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return small_results(tmp_path_factory.mktemp("results"))


def test_every_class_with_a_display_is_here(results):
    assert {type(result).__name__ for result in results} >= set(DISPLAYS) - {"GeneratedRun"}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_result_shows_counts_intervals_directions_and_sentences(results, format_):
    missing = {type(result).__name__: results_faults(list(blocks_of(result)), format_) for result in results}
    assert {name: faults for name, faults in missing.items() if faults} == {}


@pytest.mark.parametrize("runs", [2, 3])
def test_a_comparison_of_80_columns_is_one_table_each(results, monkeypatch, runs):
    monkeypatch.setenv("COLUMNS", "80")
    (compared,) = [each for each in results if type(each).__name__ == "RunComparison" and len(each.runs) == runs]
    blocks = list(blocks_of(compared))
    tables = [block for block in blocks if isinstance(block, Figures)]
    output = rendered(blocks, "table")
    heads = [line for line in output.splitlines() if "  95% interval" in line]
    assert max(map(len, heads)) <= 80
    assert len(heads) == len(tables)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_every_kind_of_block_is_here():
    assert set(blocks("a")) == set(get_args(Block))


@pytest.mark.parametrize("format_", FORMATS)
def test_every_figure_has_its_counts_interval_and_direction(format_):
    assert faults(format_) == []


@pytest.mark.parametrize("format_", FORMATS)
def test_a_dropped_total_or_direction_is_noticed(format_, monkeypatch):
    def without_total(each):
        return msgspec.structs.replace(each, n_total=None, direction=None)

    renderer = type(renderer_of(format_))
    table = renderer.figures

    def figures(self, block):
        rows = [FigureRow(without_total(row.figure), row.names, row.before, row.after) for row in block.rows]
        return table(self, Figures(rows, block.heads, block.before, block.after))

    monkeypatch.setattr(renderer, "figures", figures)
    missing = faults(format_)
    assert any(fault.startswith("Figures: ") and re.search(r"2,?\d\d\d", fault) for fault in missing)
    assert any("higher" in fault for fault in missing) or format_ != "json"


@pytest.mark.parametrize("columns", [80, 200])
def test_a_narrow_terminal_keeps_counts_and_intervals_in_one_table(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [FigureRow(figure(name, kind="mean", bounds=(0, 1))) for name in ("contextual_relevance", "rouge_l")]
    block = Figures(rows, title="metrics")
    output = rendered([block], "table")
    assert [shows(output, each, "table") for each in figures_in(block)] == [[], []]
    assert output.count("95% interval") == 1
    assert max(map(len, output.splitlines())) <= columns
    assert ("std. error" in output) == (columns == 200)


LONG = (
    "llava-onevision-qwen2-7b-ov-hf-temperature-0-prompt-v2",
    "InternVL3-78B-thinking-with-a-budget-of-32768-tokens",
)


def test_long_names_are_folded_and_split_no_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    pairs = Figures([FigureRow(figure(), LONG), FigureRow(figure(), LONG[::-1])], ("A", "B"), is_difference=True)
    grid = Grid("model", LONG, [GridRow(name, [GridCell(figure()), GridCell(figure())]) for name in LONG])
    for block in (pairs, grid):
        output = rendered([block], "table")
        assert sum(line.startswith("───") for line in output.splitlines()) == 1
        assert max(map(len, output.splitlines())) <= 80
        letters = "".join(output.split())
        assert all(part in letters for name in LONG for part in (name[:8], name[-3:]))


def test_the_longest_numbers_of_two_systems_are_one_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    difference = msgspec.structs.replace(figure("perplexity"), value=51.3025, low=-95.513, high=199.5562)
    names = ("semantic_similarity", "perplexity", "composite_score")
    rows = [FigureRow(difference, [name], ["294.3980", "345.7005"], ["0.4694", "▼"]) for name in names]
    before, after = ["Alba", "Boreas"], ["p", ""]
    block = Figures(rows, before=before, after=after, value="Boreas - Alba", is_difference=True)
    lines = rendered([block], "table").splitlines()
    assert sum(line.startswith("───") for line in lines) == 1
    assert max(map(len, lines)) <= 80
    (shown,) = (line for line in lines if line.startswith("perplexity"))
    assert "294.3980 345.7005 +51.3025 -95.5130 … +199.5562" in shown
    assert shown.endswith("0.4694 ▼")


def test_a_table_that_fits_only_with_a_column_for_each_row_is_turned_round(monkeypatch):
    heads = ["model", "captions", "a task with a long name", *(f"task {number}" for number in range(9))]
    values = [f"0.{number:04} ± 0.0123" for number in range(11)]
    table = Table(heads, [Row(["alba", *values]), Row(["boreas", *values[::-1]], is_strong=True)])
    monkeypatch.setenv("COLUMNS", "80")
    first, _, *rows = rendered([table], "table").splitlines()
    assert first.split() == ["model", "alba", "boreas"]
    assert [row.split("  ")[0] for row in rows] == heads[1:]
    assert rows[1].split()[-6:] == [*values[1].split(), *values[-2].split()]
    monkeypatch.setenv("COLUMNS", "300")
    assert rendered([table], "table").splitlines()[0].split()[:2] == ["model", "captions"]
    monkeypatch.setenv("COLUMNS", "30")  # neither fits
    assert rendered([table], "table").splitlines()[0].split()[:2] == ["model", "captions"]


def test_a_finding_has_the_same_sentence_everywhere():
    finding = Finding("answers that repeat the prompt", "COPIED", about=["cider_d", "wer"], count=12, total=300)
    sentence = "CIDEr-D, WER: 12 of 300 (4.0%): answers that repeat the prompt"
    assert finding.sentence == sentence
    for format_ in FORMATS:
        words = plain(rendered([finding], format_), format_).replace("~%", " %").replace("~\\%", " %")
        assert sentence in words, format_
        assert "COPIED" in words


def test_names_are_printed_as_in_papers_and_kept_in_json():
    rows = [FigureRow(figure(name)) for name in ("cider_d", "bleu", "rouge_l", "meteor", "spice", "wer", "mine")]
    for format_ in FORMATS:
        output = plain(rendered([Figures(rows)], format_), format_)
        printed = ["CIDEr-D", "BLEU-4", "ROUGE-L", "METEOR", "SPICE", "WER", "mine"]
        assert [name for name in printed if name not in output] == ([] if format_ != "json" else printed[:-1])
        assert ("cider_d" in output) == (format_ == "json")


@pytest.mark.parametrize("kind", list(get_args(Block)), ids=lambda kind: kind.__name__)
def test_no_text_is_code(kind):
    block = blocks(HOSTILE)[kind]
    html = rendered([block], "html")
    assert "<script" not in html
    assert not {"\x1b", "\u202e"} & set(html)
    latex = rendered([block], "latex")
    assert "\\input{" not in latex
    assert not re.search(r"(?<!\\)[%&](?! )", re.sub(r"^% needs.*", "", latex).replace(" & ", " "))
    markdown = rendered([block], "markdown")
    assert "<script" not in markdown
    assert not re.search(r"(?<!\\)\]\(", markdown)
    terminal = rendered([block], "table")
    assert "\x1b[31m" not in terminal
    assert "\u202e" not in terminal
    assert "\x1b" not in rendered([block], "json")
    json.loads(rendered([block], "json"))


def test_a_cell_of_a_csv_file_is_no_formula():
    assert list(csv_lines([["=1+1", "@SUM(A1)", 0.5]])) == ["'=1+1,'@SUM(A1),0.5\r\n"]
