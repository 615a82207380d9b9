"""What the report and the viewer show of judges and their verdicts."""

from __future__ import annotations

import re
from html import unescape

import msgspec
import pytest

from multimodal_eval import evaluate
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import Calibration, CurvePoint
from multimodal_eval.core.records import JudgingInfo
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.build import report_html
from tests.judges.scripted import judged, pair

pytest.importorskip("duckdb")
pytest.importorskip("starlette")
from tests.report.viewer.viewed import client  # needs the packages checked above

# Ten pairs, two judges. The first judge takes the longer answer, the second always what is shown first.
PAIRS = [
    pair(number, "long " * (1 + number % 3), "short", system="gpt-4o", baseline_system="llama-3")
    for number in range(10)
]


def longer(sample, repetition, order):
    if sample == "9":
        return "no <b>verdict</b>"
    is_longer = int(sample) % 3 > 0
    return {"reason": "it is <i>long</i>", "verdict": "1" if is_longer == (order == 0) else "2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = tmp_path_factory.mktemp("judged") / "runs"
    judges = {"gpt-5": longer, "claude": lambda *place: {"reason": "", "verdict": "1"}}
    judged(PAIRS, judges, output=runs / "pairs", name="preference", form="pairwise", explain=True)
    return runs


def text_of(html: str) -> str:
    """The text of a page, on one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def test_the_report_has_a_section_about_the_judges(folder):
    page = page_of([Run(folder / "pairs")])
    section = re.search(r'<section aria-labelledby="judges">.*?</section>', page, re.DOTALL)
    assert section is not None
    text = text_of(section[0])
    said = "no human labels, so this score measures what the judge says, not the quality of the answers"
    assert said not in text
    assert text_of(page).count(said) == 1  # among the warnings
    assert "verdicts 40" in text
    assert "unreadable 2" in text
    # Judge 1 never flips, judge 2 always; sample 9 is unscored: 9 of 18 pairs.
    assert re.search(r"verdicts that turn around with the order .*?0\.5000 .*?9 / 18", text)
    assert "pairs that the longer answer wins" in text
    assert "win rate at equal lengths" in text
    assert "Krippendorff's alpha between judges, nominal" in text
    assert "bias of" in text
    assert "variance of a verdict" in text
    assert "are of the family gpt: judges prefer answers of their own family" in text
    assert '<a href="#judges">Judges</a>' in page


def test_a_report_without_samples_keeps_the_section(folder):
    page = report_html([Run(folder / "pairs")], ["pairs"], version="1", with_samples=False)
    assert 'id="judges"' in page
    assert "it is &lt;i&gt;long" not in page  # what a judge says of a sample is not in it


def test_the_viewer_shows_the_judges_of_a_run(folder):
    text = text_of(client(folder).get("/run/pairs").text)
    assert "What is known about the judges" in text
    assert re.search(r"verdicts that turn around with the order .*?0\.5000", text)


def test_the_page_of_a_sample_shows_every_verdict(folder):
    page = client(folder).get("/sample/pairs?row=1").text
    text = text_of(page)
    assert "Verdicts of preference" in text
    verdicts = page[page.index("Verdicts of") :]
    assert verdicts.count("<tr>") == 1 + 4  # the head, and two judges in two orders
    assert verdicts.count("as given") == verdicts.count("reversed") == 2
    assert text.count("10 in, 2 out") == 4
    assert "gpt-5-1" in text  # as the endpoint names the model
    assert "it is &lt;i&gt;long&lt;/i&gt;" in verdicts
    assert "<i>long" not in verdicts
    before = page[: page.index("Verdicts of")]
    assert "it is &lt;i&gt;long" not in before  # not a second time among the details of the score


def test_an_unreadable_verdict_is_shown_as_it_came(folder):
    page = client(folder).get("/sample/pairs?row=9").text
    assert "no &lt;b&gt;verdict&lt;/b&gt;" in page
    assert "not scored" in page


def test_verdicts_without_their_exchanges(folder, tmp_path):
    run = Run(folder / "pairs").save(tmp_path / "runs" / "copy")
    for file in (run.path / "exchanges").glob("preference*"):
        file.unlink()
    page = client(tmp_path / "runs").get("/sample/copy?row=1")
    assert page.status_code == 200
    assert "Verdicts of" in page.text


def test_verdicts_outside_the_folder_are_not_read(folder, tmp_path):
    run = Run(folder / "pairs").save(tmp_path / "runs" / "copy")
    file = run.path / "verdicts" / "preference.part-00000.parquet"
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    response = client(tmp_path / "runs").get("/sample/copy?row=1")
    assert response.status_code == 404
    assert "leads out of the folder" in text_of(response.text)


@pytest.mark.parametrize("name", ["../../../etc/x", "a/b", "", "a\0b", "x:y"])
def test_a_judge_that_would_name_another_file_is_refused(folder, tmp_path, name):
    run = Run(folder / "pairs").save(tmp_path / "copy")
    info = msgspec.structs.replace(run.info, judging={name: JudgingInfo(settings={})})
    run.folder.write_info(info)
    run.folder.record_checksums()
    with pytest.raises(RunFolderError, match="cannot name a metric"):
        RunFolder(tmp_path / "copy").read_info()


def test_a_calibrated_score_is_beside_that_of_the_metric(tmp_path):
    """Also for a metric without a judge, which has no section of its own."""
    rows = [
        {"id": str(n), "generated_answer": "yes" if n % 3 else "no", "references": ["yes"], "rating": n % 2}
        for n in range(60)
    ]
    for row in rows[40:]:
        row["rating"] = None
    run = evaluate(
        rows, metrics=["exact_match"], human={"exact_match": "rating"}, output=tmp_path / "labelled", progress=False
    )
    score = run.calibrated("exact_match")
    shown = f"{score.value:.4f}", f"{score.low:.4f} … {score.high:.4f}"
    text = text_of(page_of([run]))
    assert re.search(rf"calibrated .*?{shown[0]} mean {score.stderr:.4f} {shown[1]} 40 labels", text)
    assert score.signature in text
    with client(tmp_path) as viewer:
        text = text_of(viewer.get("/run/labelled").text)
    assert f"calibrated by human labels {shown[0]} mean {score.stderr:.4f} {shown[1]}" in text
    assert "40 labels" in text


# The calibrated score, and the curve in the coordinates of the drawing.


def figure(value):
    return Figure(value=value, stderr=0.01, low=value - 0.02, high=value + 0.02, method="PPI++")


CALIBRATION = Calibration(
    column="rating",
    labels=300,
    samples=1000,
    judge=figure(0.7),
    human=figure(0.6),
    corrected=figure(0.62),
    power=0.8,
    worth=500.0,
    curve=[
        CurvePoint(judge=0.0, human=0.25, low=0.0, high=0.5, n=100),
        CurvePoint(judge=1.0, human=0.75, low=0.5, high=1.0, n=200),
    ],
    notes=["a note"],
)


def test_the_calibration_curve_is_drawn(folder, tmp_path):
    run = Run(folder / "pairs").save(tmp_path / "copy")
    report = run.folder.read_judges()
    known = msgspec.structs.replace(report.metrics["preference"], calibration=CALIBRATION)
    run.folder.write_judges(msgspec.structs.replace(report, metrics={"preference": known}))
    page = page_of([run])
    body = re.search(r'<section aria-labelledby="judges">.*?</section>', page, re.DOTALL)[0]
    curve = re.search(r'<svg [^>]*aria-label="chart: mean label by score.*?</svg>', body, re.DOTALL)[0]
    # Both axes go from 0 to 1, 220 pixels from the corner (40, 230): the first point is at the left and a quarter up.
    assert re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', curve) == [("40.0", "175.0"), ("260.0", "65.0")]
    text = text_of(body)
    assert "What would people say? 0.620 [0.600, 0.640], corrected by the labels" in text
    assert "a note" in text
    assert "worth 500 labels alone" in text
