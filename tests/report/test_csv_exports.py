"""No CSV file has a cell that a spreadsheet runs as a formula, and our reader gets back the texts."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import evaluate
from multimodal_eval.analysis.leaderboard import leaderboard
from multimodal_eval.core.csv_cells import csv_lines, unescaped
from multimodal_eval.interop.export.registry import export
from multimodal_eval.report.site.build import write_site
from tests.report.viewer.viewed import client

STARTS = (
    *("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r"),
    *(" =", '"=', "'=", "\n=", "\u00a0=", "\ufeff=", "\u200b@"),
)
RUNS = ("=run", "@run")
texts = st.text(st.characters(exclude_categories=["Cs"]))


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def is_live(cell):
    """Whether a cell may be a formula: written without regard to the code that is tested."""
    if cell.startswith("'"):
        return False
    try:
        float(cell)
    except ValueError:
        kept = "".join(char for char in cell if unicodedata.category(char) not in ("Zs", "Cf", "Cc", "Zl", "Zp"))
        formula = unicodedata.normalize("NFKC", kept.lstrip("\"'"))[:1] in tuple("=+-@")
        return formula or cell.startswith(("\t", "\r"))
    return cell != cell.strip()


def samples():
    for number, start in enumerate(STARTS):
        text = f"{start}cmd|' /C calc'!A{number}"
        yield {
            "id": f"{text} {number}" if start.strip() == start else f"{start.strip()}{number}",
            "generated_answer": text,
            "question": text,
            "references": [text, "plain"],
            "group": f"{start.strip()}group{number}",
            "metadata": {f"{start}key": text, "kind": text},
        }


@pytest.fixture(scope="module")
def hostile_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formulas") / "runs"
    options = {"metrics": ["exact_match", "wer"], "skip_lint": True, "progress": False, "by": ["kind"]}
    return folder, [evaluate(list(samples()), output=folder / name, **options) for name in RUNS]


@pytest.fixture(scope="module")
def tables(hostile_runs, tmp_path_factory):
    """Every CSV file that can be written of the runs."""
    folder, runs = hostile_runs
    out = tmp_path_factory.mktemp("written")
    export(runs, "csv", out / "samples.csv")
    export(runs[:1], "csv", out / "first.csv")
    export(runs, "csv", out / "metrics.csv", rows="metrics")
    write_site(out / "site", folder, leaderboard(folder, list(RUNS), []))
    written = {path.relative_to(out).as_posix(): path.read_bytes().decode() for path in out.rglob("*.csv")}
    browser = client(folder)
    both = "run=%3Drun&run=%40run"
    addresses = [f"/runs.csv?{both}", f"/compare/numbers.csv?{both}", f"/pairs.csv?{both}&metric=wer"]
    for name in ("%3Drun", "%40run"):
        addresses += [f"/export/samples.csv/{name}", f"/export/run.csv/{name}", f"/export/run.csv/{name}?table=slices"]
    for address in addresses:
        answer = browser.get(address)
        assert answer.status_code == 200, address
        written[address] = answer.text
    return written


def test_no_cell_of_any_table_is_live(tables):
    assert (
        len(tables) == 6 + 9
    )  # samples, those of a run, metrics; a leaderboard and the results of two runs; the viewer's
    cells = [(name, cell) for name, text in tables.items() for row in rows_of(text) for cell in row]
    assert [pair for pair in cells if is_live(pair[1])] == []
    assert sum("calc" in cell for _, cell in cells) > 100


def test_the_oracle_of_this_test_sees_formulas():
    assert all(map(is_live, (f"{start}1+x" for start in STARTS if not start.startswith("'"))))
    assert not any(map(is_live, ("-0.5", "1e-5", "text", "'=1", "")))


@pytest.mark.parametrize("name", ["first.csv", "/export/samples.csv/%3Drun"])
def test_our_reader_gets_the_same_texts(tables, hostile_runs, tmp_path, name):
    path = tmp_path / "back.csv"
    path.write_text(tables[name], encoding="utf-8", newline="")
    again = evaluate(path, metrics=["exact_match"], skip_lint=True, progress=False, allow_empty=True)
    fields = ["id", "question", "generated_answer"] + (["group", "references"] if name == "first.csv" else [])
    before, after = (run.folder.read_part("samples", 0, fields).to_pylist() for run in (hostile_runs[1][0], again))
    assert after == before


def test_an_apostrophe_of_others_stays(tmp_path):
    path = tmp_path / "others.csv"
    path.write_text("id,generated_answer,references\n'=1,'-5',x\n", encoding="utf-8")
    run = evaluate(path, metrics=["exact_match"], skip_lint=True, progress=False)
    assert run.folder.read_part("samples", 0, ["id", "generated_answer"]).to_pylist() == [
        {"id": "'=1", "generated_answer": "'-5'"}
    ]


@given(st.one_of(texts, st.tuples(st.sampled_from(STARTS), texts).map("".join)))
def test_an_escaped_text_can_be_restored(text):
    ((cell,),) = rows_of("".join(csv_lines([[text]])))
    assert not is_live(cell)
    assert unescaped(cell) == text
    ((again,),) = rows_of("".join(csv_lines([[cell]])))
    assert unescaped(again) == cell


def test_cells_of_all_kinds():
    row = [None, "", -0.5, -3, True, "a,b", 'say "x"', " x"]
    assert "".join(csv_lines([row])) == ',"",-0.5,-3,true,"a,b","say ""x"""," x"\r\n'
