"""Take the screenshots of README and the guides in Chromium: python -m tools.screenshots RUNS

RUNS is the folder that `mmeval demo -o RUNS` wrote.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PANEL = ViewportSize(width=810, height=1035)
SHOWN = (540, 690)  # size of a panel in the image
PAGE = ViewportSize(width=1280, height=760)
GAP = 12
MMEVAL = [sys.executable, "-m", "multimodal_eval.cli.main"]


def report(browser: Browser, runs: Path) -> None:
    """Three panels: the result, the comparison in dark colours, and the samples on which the runs differ."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "report.html"
        pair = [str(runs / "captioning" / system) for system in ("alba", "boreas")]
        subprocess.run([*MMEVAL, "report", *pair, "-o", str(file)], check=True, stdout=subprocess.DEVNULL)
        panels = []
        for is_dark, section in ((False, None), (True, "comparison"), (False, "samples")):
            page = browser.new_page(viewport=PANEL, color_scheme="dark" if is_dark else "light")
            page.goto(file.as_uri())
            if section == "samples":
                page.get_by_role("tab", name="Runs differ most").click()
            if section:
                page.evaluate(f"document.getElementById('{section}').scrollIntoView()")
            panels.append(Image.open(BytesIO(page.screenshot())).convert("RGB").resize(SHOWN))
    width = sum(panel.width + GAP for panel in panels) - GAP
    joined = Image.new("RGB", (width, SHOWN[1]), (154, 164, 178))
    for place, panel in enumerate(panels):
        joined.paste(panel, (place * (SHOWN[0] + GAP), 0))
    joined.quantize(256, Image.Quantize.FASTOCTREE).save(IMAGES / "report.png", optimize=True)


def viewer(browser: Browser, runs: Path) -> None:
    """The samples of a run, the lowest scores first."""
    command = [*MMEVAL, "view", str(runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        page = browser.new_page(viewport=PAGE, color_scheme="light")
        page.goto(f"{address.rstrip('/')}/samples/captioning/boreas?sort=composite_score")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=IMAGES / "view.png")
        server.terminate()


def main(runs: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        report(browser, runs)
        viewer(browser, runs)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
