"""Take the screenshots of README and the guides in Chromium: python -m tools.screenshots RUNS [NAME ...]

RUNS is the folder that `mmeval demo -o RUNS` wrote. Every page is shown at 1400 and at 390 pixels, in light and in dark
colours: docs/images/pages/NAME-WIDTH-THEME.png. Names after RUNS take only these pages.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIZES = {1400: ViewportSize(width=1400, height=1000), 390: ViewportSize(width=390, height=844)}
PANEL = ViewportSize(width=810, height=1035)
SHOWN = (540, 690)  # size of a panel in the image of README
GAP = 12
MMEVAL = [sys.executable, "-m", "multimodal_eval.cli.main"]
ALBA, BOREAS = "captioning/alba", "captioning/boreas"
BOTH = f"run={ALBA}&run={BOREAS}"


@dataclass(frozen=True)
class Shot:
    """A page, its address, and what is done on it before the screenshot."""

    name: str
    address: str
    prepare: Callable[[Page], object] = lambda page: None


VIEWER = [
    Shot("runs", "/?task=captioning"),
    Shot("run", f"/run/{BOREAS}"),
    Shot("samples", f"/samples/{BOREAS}?sort=composite_score"),
    Shot("gallery", f"/samples/{BOREAS}?sort=composite_score&view=gallery"),
    Shot("sample", f"/sample/{BOREAS}?row=3"),
    Shot("compare", f"/compare?{BOTH}"),
    Shot("pairs", f"/pairs?{BOTH}"),
    Shot("scatter", f"/scatter/{BOREAS}?x=cider&y=clip_score"),
]


def taken(browser: Browser, base: str, shot: Shot) -> None:
    for width, size in SIZES.items():
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=size, color_scheme="dark" if theme == "dark" else "light")
            page.goto(base + shot.address)
            page.wait_for_load_state("networkidle")
            shot.prepare(page)
            save(page, IMAGES / "pages" / f"{shot.name}-{width}-{theme}.png")
            page.close()


def save(page: Page, path: Path) -> None:
    """A screenshot in few colours, which makes it small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.open(BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, Image.Quantize.MEDIANCUT).save(path, optimize=True)


def report(runs: Path, scratch: Path) -> Path:
    file = scratch / "report.html"
    pair = [str(runs / name) for name in (ALBA, BOREAS)]
    subprocess.run([*MMEVAL, "report", *pair, "-o", str(file)], check=True, stdout=subprocess.DEVNULL)
    return file


def panels(browser: Browser, file: Path) -> None:
    """Three panels: the verdict, the comparison in dark colours, and the samples on which the runs differ."""
    shown = []
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


def paper(browser: Browser, runs: Path, scratch: Path) -> None:
    """The first pages of the report as a PDF for an appendix."""
    file, pdf = scratch / "paper.html", scratch / "paper.pdf"
    pair = [str(runs / name) for name in (ALBA, BOREAS)]
    command = [*MMEVAL, "report", *pair, "--theme", "paper", "-o", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    page = browser.new_page()
    page.goto(file.as_uri())
    page.pdf(path=str(pdf), format="A4", prefer_css_page_size=True)
    subprocess.run(["pdftoppm", "-r", "60", "-l", "3", "-png", str(pdf), str(scratch / "paper")], check=True)
    sheets = [Image.open(sheet).convert("RGB") for sheet in sorted(scratch.glob("paper-*.png"))]
    joined = Image.new("RGB", (sum(sheet.width + GAP for sheet in sheets) - GAP, sheets[0].height), (154, 164, 178))
    place = 0
    for sheet in sheets:
        joined.paste(sheet, (place, 0))
        place += sheet.width + GAP
    joined.quantize(64, Image.Quantize.MEDIANCUT).save(IMAGES / "pages" / "paper.png", optimize=True)


@contextmanager
def served(runs: Path, *options: str) -> Iterator[str]:
    """The address of `mmeval view` while it runs."""
    command = [*MMEVAL, "view", str(runs), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        yield address.rstrip("/")
        server.terminate()


def leaderboard(runs: Path, scratch: Path) -> Path:
    """The site of a leaderboard of three submissions, made of the answers of the demo."""
    import pyarrow.parquet as pq

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
    metrics = "rouge_l,cider_d,bleu,chair_s"
    command = [*MMEVAL, "leaderboard", str(gold), str(submissions), "--metrics", metrics, "--by", "rouge_l"]
    options = ["-o", str(scratch / "board"), "--site", str(site), "--title", "Shapes 2026", "--allow-partial"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    return site


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def start_labelling(page: Page) -> None:
    """Give a name and open the first pair."""
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Start").click()
    page.wait_for_load_state("networkidle")


def main(runs: Path, names: list[str]) -> None:
    def is_wanted(name: str) -> bool:
        return not names or name in names

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if is_wanted("report"):
            file = report(runs, scratch)
            panels(browser, file)
            taken(browser, file.as_uri(), Shot("report", ""))
        if is_wanted("paper"):
            paper(browser, runs, scratch)
        with served(runs) as address:
            for shot in VIEWER:
                if is_wanted(shot.name):
                    taken(browser, address, shot)
        if is_wanted("label"):
            labels = scratch / "labels.jsonl"
            with served(runs / "captioning", "--label", str(labels), "--pairwise") as address:
                taken(browser, address, Shot("label", "/label", start_labelling))
        if is_wanted("leaderboard"):
            site = leaderboard(runs, scratch)
            taken(browser, site.as_uri(), Shot("leaderboard", "/index.html"))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
