"""README is short, its example and its comparison with other programs are real, and every page can be reached from it.

`python -m tools.site update README.md` updates the output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import sacrebleu
from pycocoevalcap.rouge.rouge import Rouge

from multimodal_eval import evaluate
from multimodal_eval.text.tokenizers import tokenize
from tests.cli.command_line import mmeval
from tests.docs.page_commands import commands, write_files
from tests.docs.terminal import run_in_terminal
from tools.site.blocks import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path, README)
    return tmp_path


def test_it_is_short():
    assert README.count("\n") <= 90
    assert len(re.findall(r"^\|(?:---\|)+$", README, re.MULTILINE)) <= 3


def test_the_example_prints_what_is_pasted_in_a_terminal_of_80_columns(folder):
    (command,) = commands(README)
    (pasted,) = [block.output.text for block in parse(README).blocks if block.output]
    shown = run_in_terminal(command, folder)
    assert pasted.split() == shown.split(), "run: python -m tools.site update README.md"  # captions wrap at the width
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith("!")), "terminals wrap warnings"
    assert (folder / "runs" / "first" / "report.html").is_file()


def test_the_other_commands_of_the_text_run(folder):
    assert "`mmeval validate captions.jsonl`" in README
    mmeval("validate", str(folder / "captions.jsonl"))
    assert '`evaluate("captions.jsonl", metrics=["rouge_l"])`' in README
    assert evaluate(folder / "captions.jsonl", metrics=["rouge_l"])["rouge_l"]["n_scored"] == 3


def cells(first: str) -> list[str]:
    """The other cells of the row of README's tables that starts with this cell."""
    (row,) = (line for line in README.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in row.strip("|").split("|")[1:]]


def read(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]


def words(text: str) -> str:
    return " ".join(tokenize([text], "ptb")[0])


def test_what_programs_do_with_an_error_message(folder):
    ours, theirs, other = cells("an error message")
    assert f"ROUGE-L {evaluate(folder / 'captions.jsonl', metrics='rouge_l')['rouge_l']['value']:.4f} of 3 / 4" in ours
    samples = read(folder)
    references = {sample["id"]: [words(text) for text in sample["references"]] for sample in samples}
    answers = {sample["id"]: [words(sample["generated_answer"])] for sample in samples}
    assert theirs.endswith(f"ROUGE-L {Rouge().compute_score(references, answers)[0]:.4f}")
    assert other == "scored as a caption"
    hypotheses = [sample["generated_answer"] for sample in samples]
    texts = [[sample["references"][0] for sample in samples]]
    without = sacrebleu.corpus_bleu(hypotheses[:3], [texts[0][:3]]).score
    assert sacrebleu.corpus_bleu(hypotheses, texts).score < without


def test_what_programs_do_with_null(folder):
    ours, theirs, other = cells("null")
    samples = read(folder)
    samples[3]["generated_answer"] = None
    run = evaluate(samples, metrics="rouge_l")
    assert (run["rouge_l"]["n_scored"], run["rouge_l"]["unscored"]) == (3, {"missing_input": 1})
    assert ours == "unscored, with the reason"
    references = {sample["id"]: sample["references"] for sample in samples}
    with pytest.raises(AttributeError, match=r"^'NoneType' object has no attribute 'split'$"):
        Rouge().compute_score(references, {sample["id"]: [sample["generated_answer"]] for sample in samples})
    assert theirs.startswith("`AttributeError`")
    texts = [[sample["references"][0] for sample in samples]]
    with pytest.raises(TypeError, match=r"^BLEU: Undefined line in hypotheses stream!$"):
        sacrebleu.corpus_bleu([sample["generated_answer"] for sample in samples], texts)
    assert other.startswith("`TypeError`")


def test_what_programs_do_with_an_absent_prediction(folder):
    ours, theirs, other = cells("absent from the predictions")
    samples = read(folder)
    answers = [{"id": sample["id"], "generated_answer": sample.pop("generated_answer")} for sample in samples]
    for name, rows in (("data.jsonl", samples), ("predictions.jsonl", answers[:3])):
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    pair = ["score", str(folder / "data.jsonl"), str(folder / "predictions.jsonl"), "--metrics", "rouge_l"]
    refused = mmeval(*pair, "-o", str(folder / "run"), code=1).stderr
    assert "no prediction (first: '4')" in refused
    assert "3 / 4" in mmeval(*pair, "-o", str(folder / "run"), "--allow-partial").stdout
    assert ours == "refused, with its id; `--allow-partial`: unscored"
    references = {sample["id"]: sample["references"] for sample in samples}
    with pytest.raises(AssertionError, match=r"^$"):
        Rouge().compute_score(references, {answer["id"]: [answer["generated_answer"]] for answer in answers[:3]})
    assert theirs == "`AssertionError` without a message"
    hypotheses = [answer["generated_answer"] for answer in answers[:3]]
    texts = [sample["references"][0] for sample in samples]
    assert sacrebleu.corpus_bleu(hypotheses, [texts]).score == sacrebleu.corpus_bleu(hypotheses, [texts[:3]]).score
    assert other == "left out without notice"


def targets(page: Path) -> list[tuple[Path, str]]:
    """The files that a page links to, with the part after #."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = [link.partition("#") for link in LINK.findall(re.sub(r"`[^`\n]*`", "``", text)) if "://" not in link]
    return [((page.parent / file).resolve() if file else page, anchor) for file, _, anchor in links]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for target, anchor in targets(page):
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {target}#{anchor}"


def test_every_link_leads_somewhere():
    assert [link for page in PAGES for link in broken_links(page)] == []


def test_every_page_can_be_reached_from_readme():
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [target for target, _ in targets(page) if target.suffix == ".md" and target.is_file()]
    assert {*PAGES} <= reached
    listed = {target for target, _ in targets(ROOT / "docs" / "README.md")}
    assert {*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "README.md"} <= listed, "the index lists every guide"
