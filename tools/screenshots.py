"""Take the screenshots of README and the guides in Chromium: python -m tools.screenshots RUNS [NAME ...]

RUNS is the folder that `mmeval demo -o RUNS` wrote. Names after RUNS take only these of report, gallery, label and
leaderboard.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIZE = ViewportSize(width=1400, height=1000)
PANEL = ViewportSize(width=810, height=1035)
SHOWN = (540, 690)  # size of a panel in the image of README
GAP = 12
MMEVAL = [sys.executable, "-m", "multimodal_eval.cli.main"]
ALBA, BOREAS = "captioning/alba", "captioning/boreas"


def opened(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return page


def save(page: Page, name: str) -> None:
    """A screenshot in few colours, which makes it small."""
    image = Image.open(BytesIO(page.screenshot())).convert("RGB")
    path = IMAGES / "pages" / f"{name}-1400-light.png"
    image.quantize(128, Image.Quantize.MEDIANCUT).save(path, optimize=True)
    page.close()


def mmeval(*words: str | Path) -> None:
    subprocess.run([*MMEVAL, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def report(browser: Browser, runs: Path, scratch: Path) -> None:
    """Three panels: the verdict, the comparison in dark colours, and the samples on which the runs differ."""
    file, shown = scratch / "report.html", []
    mmeval("report", runs / ALBA, runs / BOREAS, "-o", file)
    for is_dark, section in ((False, None), (True, "comparison"), (False, "samples")):
        page = browser.new_page(viewport=PANEL, color_scheme="dark" if is_dark else "light")
        page.goto(file.as_uri())
        if section == "samples":
            page.get_by_role("tab", name="Runs differ most").click()
        if section:
            page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
        shown.append(Image.open(BytesIO(page.screenshot())).convert("RGB").resize(SHOWN))
    width = sum(panel.width + GAP for panel in shown) - GAP
    joined = Image.new("RGB", (width, SHOWN[1]), (154, 164, 178))
    for place, panel in enumerate(shown):
        joined.paste(panel, (place * (SHOWN[0] + GAP), 0))
    joined.quantize(256, Image.Quantize.FASTOCTREE).save(IMAGES / "report.png", optimize=True)


@contextmanager
def served(runs: Path, *options: str) -> Iterator[str]:
    """The address of `mmeval view` while it runs."""
    command = [*MMEVAL, "view", str(runs), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        yield address.rstrip("/")
        server.terminate()


def gallery(browser: Browser, runs: Path, _: Path) -> None:
    with served(runs) as address:
        save(opened(browser, f"{address}/samples/{BOREAS}?sort=composite_score&view=gallery"), "gallery")


def label(browser: Browser, runs: Path, scratch: Path) -> None:
    """The first pair, after a name was given."""
    with served(runs / "captioning", "--label", str(scratch / "labels.jsonl"), "--pairwise") as address:
        page = opened(browser, f"{address}/label")
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Start").click()
        page.wait_for_load_state("networkidle")
        save(page, "label")


def leaderboard(browser: Browser, runs: Path, scratch: Path) -> None:
    """The site of a leaderboard of three submissions, made of the answers of the demo."""
    gold, submissions, site = scratch / "gold.jsonl", scratch / "submissions", scratch / "site"
    submissions.mkdir()
    answers = {}
    for name in (ALBA, BOREAS):
        (part, *_) = sorted((runs / name / "samples").glob("*.parquet"))
        answers[Path(name).name] = pq.read_table(part, columns=["id", "references", "generated_answer"]).to_pylist()
    rows = answers["alba"]
    write(gold, [{"id": row["id"], "references": row["references"]} for row in rows])
    answers["copied-reference"] = [{"id": row["id"], "generated_answer": row["references"][0]} for row in rows]
    for name, samples in answers.items():
        kept = [{"id": row["id"], "generated_answer": row["generated_answer"] or ""} for row in samples]
        write(submissions / f"{name}.jsonl", kept)
    metrics = ("--metrics", "rouge_l,cider_d,bleu,chair_s", "--by", "rouge_l", "--allow-partial")
    output = ("-o", scratch / "board", "--site", site, "--title", "Shapes 2026")
    mmeval("leaderboard", gold, submissions, *metrics, *output)
    save(opened(browser, (site / "index.html").as_uri()), "leaderboard")


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main(runs: Path, names: list[str]) -> None:
    shots = {shot.__name__: shot for shot in (report, gallery, label, leaderboard)}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names or shots:
            shots[name](browser, runs, Path(folder))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
