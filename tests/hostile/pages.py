"""Reports and viewer pages full of hostile texts, opened in Chromium: nothing runs or is loaded from elsewhere."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from multimodal_eval.report.build import report_html
from tests.hostile.campaign import FaultError, campaign
from tests.hostile.viewer import hostile_text
from tests.report import hostile
from tests.report.visits import DESKTOP, Visit, launched_chromium, served

# What a text may have turned into. Texts in other attributes than those of `LINKS` are only shown.
TRACES = """() => {
    const LINKS = ["href", "src", "action", "formaction", "data", "xlink:href", "srcdoc"];
    const runs = attribute => attribute.name.startsWith("on")
        || (LINKS.includes(attribute.name) && /^\\s*(javascript:|data:text|https?:|[/][/])/i.test(attribute.value));
    return {
        pwned: window.__pwned ?? null,
        elements: document.querySelectorAll("iframe, object, embed, math, base, plaintext, xmp, b, marquee").length,
        attributes: [...document.querySelectorAll("*")].filter(element => [...element.attributes].some(runs)).length,
    };
}"""


@campaign("pages", cases=3, seconds=600, memory=None)
def attack(random: Random, folder: Path) -> str | None:
    if chromium() is None:
        return "no browser"
    texts = [hostile_text(random).replace("\0", "") or "x" for _ in hostile.PAYLOADS]
    joined = "\n".join(text for text in texts if len(text) <= hostile.LONGEST_JOINED)
    with patch.multiple(hostile, PAYLOADS=texts, ALL=joined):
        run = hostile.hostile_run(folder / "runs" / "hostile")
    page = report_html([run], [joined], version="1", per_group=len(texts))
    if random.random() < 0.5:  # escaping alone must be enough
        page = page.replace("Content-Security-Policy", "x-no-policy")
    (folder / "report.html").write_text(page, encoding="utf-8")
    _visit((folder / "report.html").as_uri())
    with served(folder / "runs") as address:
        for path in ("/", "/run/hostile", "/samples/hostile", f"/sample/hostile?row={random.randrange(len(texts))}"):
            _visit(address + path)
    return "opened"


def _visit(address: str) -> None:
    seen = Visit(chromium(), address, viewport=DESKTOP)
    try:
        seen.page.locator("details").evaluate_all("elements => elements.forEach(details => details.open = true)")
        traces: dict[str, Any] = seen.page.evaluate(TRACES)
        if any(traces.values()):
            raise FaultError(f"{address}: {traces}")
        if seen.dialogs or seen.elsewhere:
            raise FaultError(f"{address}: dialogs {seen.dialogs}, requests {seen.elsewhere}")
    finally:
        seen.context.close()


@cache
def chromium() -> Any:
    """A browser for all cases of a process, or None."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(launched_chromium())
