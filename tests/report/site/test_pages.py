"""The pages of a site: content, links, policy, and the same bytes for the same input."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.leaderboard import leaderboard, read_leaderboard
from multimodal_eval.core.display import printed
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.blocks import Verdict
from multimodal_eval.display.renderer import blocks_of
from multimodal_eval.report.site.build import tied_places, write_site
from multimodal_eval.report.site.content import site_content
from tests.report.site.boards import CONFIG, PUBLIC_REASON, SAMPLES, SYSTEMS, ranked, samples, scored
from tests.report.site.conftest import TITLE
from tests.report.site.parsed import allowed, broken_links, files_of, parsed


def slug(site, name):
    """The folder of a submission."""
    return next(path.parent for path in site.glob("submissions/*/results.json") if _name(path) == name)


def _name(path):
    return json.loads(path.read_text(encoding="utf-8"))["name"]


def test_every_link_resolves_within_the_folder(site):
    assert broken_links(site) == []
    linked = {link for page in site.rglob("*.html") for link in parsed(page).links}
    assert {"methods.html", "leaderboard.csv", "report.html", "results.json", "../../index.html"} <= linked


def test_the_files_of_a_site(site):
    names = set(files_of(site))
    assert {"index.html", "methods.html", "leaderboard.json", "leaderboard.csv", "site.json"} <= names
    assert sum(name.startswith("submissions/") for name in names) == 4 * len(SYSTEMS)
    assert set(json.loads((site / "site.json").read_text())["files"]) == names - {"site.json"}


def test_own_pages_may_run_only_their_own_code_and_load_nothing(site):
    pages = [site / "index.html", site / "methods.html", *site.glob("submissions/*/index.html")]
    assert len(pages) == 2 + len(SYSTEMS)
    for path in pages:
        page = parsed(path)
        assert page.policy.startswith("default-src 'none';")
        for rule in ("base-uri 'none'", "form-action 'none'", "img-src data:"):
            assert rule in page.policy
        assert "unsafe" not in page.policy
        assert "'self'" not in page.policy
        assert sorted(tag for tag, _ in page.code) == ["script", "style"]
        assert all(allowed(code) in page.policy for _, code in page.code)
        assert not any(tag in ("iframe", "object", "embed", "form", "base") for tag, _ in page.elements)
        assert not any(name.startswith("on") or name == "style" for _, attrs in page.elements for name in attrs)
        assert not any("src" in attrs for tag, attrs in page.elements if tag == "script")


def test_reports_are_files_that_load_nothing(site):
    for path in site.glob("submissions/*/report.html"):
        page = parsed(path)
        assert not any("src" in attrs for tag, attrs in page.elements if tag == "script")
        sources = page.policy.partition("script-src ")[2].partition(";")[0].split()
        assert sources
        assert all(source.startswith("'sha256-") for source in sources)
        assert page.links == ["index.html"]


def test_the_verdict_names_the_first_and_its_ties(site, board_runs):
    first, second, third = board_runs[1].standings
    assert set(first.tied_with or ()) == {second.name}
    text = parsed(site / "index.html").text
    (sentence,) = (block.sentence for block in blocks_of(board_runs[1]) if isinstance(block, Verdict))
    assert sentence in text
    with_interval = f"{first.value:.3f} [{first.low:.3f}, {first.high:.3f}]"
    assert sentence.startswith(f"{first.name} is first with {with_interval} on ROUGE-L, over 40 of 40 samples.")
    assert sentence.endswith(f"It is tied with {second.name}: these differences may be due to chance.")
    assert third.p_value is not None
    assert third.p_value < 0.05


@pytest.mark.parametrize(
    ("systems", "sentence"),
    [
        ({"alba": 9}, "alba is the only submission, with"),
        ({"alba": 9, "cirrus": 3}, "ahead of all others. The next, cirrus, is"),
        ({"alba": 9, "boreas": 9}, "It is tied with every other submission"),
    ],
)
def test_other_verdicts(tmp_path, systems, sentence):
    board = ranked(tmp_path / "runs", systems)
    write_site(tmp_path / "site", tmp_path / "runs", board)
    assert sentence in parsed(tmp_path / "site" / "index.html").text


def test_equal_scores_share_the_first_place(tmp_path, board_runs):
    runs, board = board_runs
    first, second, third = board.standings
    equal = replace(second, value=first.value, place=1)
    write_site(tmp_path / "site", runs, replace(board, standings=(first, equal, third)))
    text = parsed(tmp_path / "site" / "index.html").text
    assert f"{first.name} shares the first place with 1 other, with {first.value:.3f}" in text


def test_ties_that_are_not_tested(tmp_path, board_runs):
    runs, board = board_runs
    rows = tuple(replace(row, tied_with=None, p_value=None, rank=None) for row in board.standings)
    write_site(tmp_path / "site", runs, replace(board, standings=rows))
    text = parsed(tmp_path / "site" / "index.html").text
    assert "Whether the others are tied with it is not known" in text
    assert "Ties are not tested: chance cannot be estimated" in text
    assert "not tested" in parsed(slug(tmp_path / "site", "cirrus") / "index.html").text


def test_the_table_has_every_score_with_its_interval(site, board_runs):
    runs, board = board_runs
    page = parsed(site / "index.html")
    for row in board.standings:
        assert f"{row.value:.4f} {row.low:.4f} … {row.high:.4f}" in page.text
        for name in ("exact_match", "wer"):
            entry = row.counted.get(name) or Run(runs / row.name).entries[name]
            assert f"{entry.value:.4f} {entry.low:.4f} … {entry.high:.4f}" in page.text
    values = {float(attrs["data-value"] or "") for _, attrs in page.elements if "data-value" in attrs}
    assert {row.value for row in board.standings} <= values  # sorted by full precision
    assert "WER ↓ lower is better" in page.text
    assert f"{SAMPLES} samples" in page.text
    assert "left out" not in page.text


def test_who_failed_what(site, board_runs, tmp_path):
    runs, board = board_runs
    failed = "Failed answers count as the worst value of the metric ."
    index = parsed(site / "index.html").text
    assert f"Failed answers {failed}" in index
    assert "cirrus 1 (1 with an error message)" in index
    page = parsed(slug(site, "cirrus") / "index.html").text
    assert f"Failed answers: 1 (1 with an error message). {failed}" in page
    assert "Failed answers" not in parsed(slug(site, "alba") / "index.html").text
    assert board.signature.endswith("|failures:worst")
    assert board.signature in parsed(site / "methods.html").text
    (row,) = (row for row in board.standings if row.name == "cirrus")
    entry = Run(runs / "cirrus").entries["rouge_l"]
    assert row.counted["rouge_l"].value == row.value == pytest.approx(entry.value * (SAMPLES - 1) / SAMPLES)
    assert re.search(rf"ROUGE-L ★[\d. ]* {row.value:.4f} [\d. …]+ 39 \+ 1 / 40", page)
    assert re.search(rf"1 left out[\d. ;…]* {entry.value:.4f} ", page)  # the mean without the failed answer
    left_out = ranked(tmp_path / "runs", {"alba": 9, "cirrus": 3}, failed_answers="left-out")
    write_site(tmp_path / "site", tmp_path / "runs", left_out)
    assert "40 samples, 1 of them left out" in parsed(tmp_path / "site" / "index.html").text


def test_a_refused_submission_is_listed_without_a_place(site):
    page = parsed(site / "index.html")
    assert f"late {PUBLIC_REASON}" in page.text
    assert len([tag for tag, attrs in page.elements if tag == "tr"]) == 1 + len(SYSTEMS)


def test_the_page_of_a_submission(site, board_runs):
    first, second, third = board_runs[1].standings
    text = parsed(slug(site, "cirrus") / "index.html").text
    assert "Place 3 of 3" in text
    to_first, to_second = third.differences
    assert (to_first.other, to_second.other) == (first.name, second.name)
    for difference, role in ((to_first, "the first"), (to_second, "place 2, the next above")):
        interval = f"{difference.low:.4f} … {difference.high:.4f}"
        assert f"{difference.other} , {role} {difference.value:+.4f} {interval} < 0.0001 worse" in text
    text = parsed(slug(site, second.name) / "index.html").text
    assert f"{first.name} (1) . These differences may be due to chance" in text
    assert f"cirrus , place 3, the next below {second.differences[1].value:+.4f}" in text
    assert "better" in text


@pytest.mark.parametrize(
    ("places", "shown"),
    [([], ""), ([2], "2"), ([2, 3], "2, 3"), ([2, 3, 4], "2–4"), ([1, 4, 5, 6, 9, 10, 12], "1, 4–6, 9, 10, 12")],
)
def test_ties_are_shown_as_ranges_of_places(board_runs, places, shown):
    runs, board = board_runs
    rows = [replace(board.standings[0], name="alba", tied_with=tuple(f"n{place}" for place in places))]
    content = site_content(runs, replace(board, standings=tuple(rows)), "t", with_samples=False)
    first = content.submissions[0]
    others = [replace(first, row=replace(rows[0], name=f"n{place}", place=place)) for place in places]
    assert tied_places(first, replace(content, submissions=[first, *others])) == shown


def test_places_by_other_metrics(site, board_runs):
    runs, board = board_runs
    for metric, lower in (("wer", True), ("exact_match", False)):
        values = {row.name: Run(runs / row.name).entries[metric].value for row in board.standings}
        for name, value in values.items():
            place = 1 + sum(other < value if lower else other > value for other in values.values())
            cells = parsed(slug(site, name) / "index.html").text.partition(f" {printed(metric)} ")[2].split()
            assert str(place) in cells[:20], (metric, name)


def test_methods(site, board_runs):
    runs, board = board_runs
    text = parsed(site / "methods.html").text
    info = Run(runs / "alba").info
    for signature in info.signatures.values():
        assert signature.text in text
    assert f"numpy {info.versions['numpy']}" in text
    assert "Each of the 3 pairs is compared with the largest statistic of all pairs (max-T)" in text
    assert board.method in text
    assert "mmeval leaderboard x y" in text
    assert "Failed answers count as the worst value of the metric : answers that are missing" in text
    assert '"skip_lint": true' in text
    assert "Seed 0" in text


def test_downloads_have_all_digits(site, board_runs):
    runs, board = board_runs
    stored = json.loads((site / "leaderboard.json").read_text())
    assert [row["value"] for row in stored["standings"]] == [row.value for row in board.standings]
    rows = list(csv.DictReader(io.StringIO((site / "leaderboard.csv").read_bytes().decode())))
    assert [(row["submission"], float(row["rouge_l"])) for row in rows] == [
        (row.name, row.value) for row in board.standings
    ]
    assert float(rows[0]["wer_low"]) == Run(runs / rows[0]["submission"]).entries["wer"].low
    assert rows[0]["tied_with"] == board.standings[1].name
    results = json.loads((slug(site, "cirrus") / "results.json").read_text())
    entry = next(row for row in board.standings if row.name == "cirrus").counted["wer"]
    assert (results["place"], results["metrics"]["wer"]["value"]) == (3, entry.value)
    table = list(csv.DictReader(io.StringIO((slug(site, "cirrus") / "results.csv").read_bytes().decode())))
    assert {row["metric"] for row in table} >= {"rouge_l", "wer", "wer.hits"}
    row = next(row for row in table if row["metric"] == "wer")
    assert (float(row["high"]), row["n_scored"], row["n_total"]) == (entry.high, str(SAMPLES - 1), str(SAMPLES))


def test_the_published_leaderboard_can_be_read_again(site, tmp_path):
    (tmp_path / "leaderboard.json").write_bytes((site / "leaderboard.json").read_bytes())
    assert [row.name for row in read_leaderboard(tmp_path).standings][2] == "cirrus"


def test_the_same_runs_give_the_same_bytes(site, board_runs, tmp_path):
    runs, _ = board_runs
    write_site(tmp_path / "again", runs, read_leaderboard(runs), title=TITLE)
    assert files_of(tmp_path / "again") == files_of(site)


def test_a_leaderboard_by_a_part_and_one_of_an_older_version(board_runs, tmp_path):
    runs, board = board_runs
    by_part = leaderboard(runs, list(SYSTEMS), by="wer.hits", allow_partial=True)
    leaderboard(runs, list(SYSTEMS), board.refused, allow_partial=True, command=board.command)  # as it was
    write_site(tmp_path / "part", runs, by_part)
    assert "is first with" in parsed(tmp_path / "part" / "index.html").text
    rows = tuple(replace(row, differences=()) for row in board.standings)
    older = replace(
        board, standings=rows, command=None, refused=tuple(replace(r, public_reason="") for r in board.refused)
    )
    write_site(tmp_path / "older", runs, older)
    assert "The submission could not be scored." in parsed(tmp_path / "older" / "index.html").text
    assert "Differences" not in parsed(slug(tmp_path / "older", "cirrus") / "index.html").text


def test_a_submission_that_lacks_a_metric(tmp_path):
    folder = tmp_path / "runs"
    scored(folder, {"alba": 9})
    evaluate(samples("cirrus", 3), config={**CONFIG, "metrics": ["rouge_l"]}, output=folder / "cirrus")
    write_site(tmp_path / "site", folder, leaderboard(folder, ["alba", "cirrus"], allow_partial=True))
    page = parsed(tmp_path / "site" / "index.html")
    cells = [attrs for tag, attrs in page.elements if attrs.get("data-label") == "WER"]
    assert ["data-value" in attrs for attrs in cells] == [True, False]
