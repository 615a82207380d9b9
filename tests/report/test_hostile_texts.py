"""No text from a run is executed in a report or in the viewer. `hostile.py` has the texts and a run full of them."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.analysis.compare import MetricComparison
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.visible import LONGEST
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.plain_text import visible
from multimodal_eval.report.build import report_html
from multimodal_eval.report.viewer.app import ASSETS, create_app
from multimodal_eval.report.viewer.guard import host_check
from tests.hostile.campaign import EVERY
from tests.report.hostile import (
    ALL,
    PAYLOADS,
    TEXTS,
    hostile_comparison,
    hostile_progress,
    hostile_run,
    hostile_sensitivity,
)
from tests.report.viewer.viewed import HOST, PORT, client
from tests.report.visits import DESKTOP, PHONE, served

HARMLESS = """() => ({
    pwned: window.__pwned,
    scripts: document.scripts.length,
    styles: document.querySelectorAll("style").length,
    foreign: document.querySelectorAll(
        "iframe, object, embed, form, math, link:not([rel=icon]), base, plaintext, b, svg image, svg use, svg a, "
        + "svg:not(.drawing):not(.ticks):not(.heights):not(.area):not(.area > svg)"
    ).length,
    handlers: [...document.querySelectorAll("*")].filter(element => [...element.attributes].some(
        attribute => attribute.name.startsWith("on") || /^\\s*javascript:/i.test(attribute.value))
    ).length,
})"""


@pytest.mark.parametrize("theme", ["screen", "paper"])
@pytest.mark.parametrize("policy", [True, False], ids=["with the policy", "escaping only"])
def test_no_text_in_a_report_is_executed(visit, tmp_path, policy, theme):
    run = hostile_run(tmp_path / TEXTS[0].replace("/", ""))
    page = report_html(
        [run],
        [ALL],
        version="1",
        sensitivity=hostile_sensitivity(),
        per_group=len(PAYLOADS),
        comparison=hostile_comparison(),
        theme=theme,
    )
    assert page.count('<article class="sample">') == len(PAYLOADS)
    if not policy:
        page = page.replace("Content-Security-Policy", "x-no-policy")
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    seen = visit(file.as_uri(), viewport=DESKTOP)
    for panel in seen.page.get_by_role("tab").all():
        panel.click()
    seen.page.locator("details").evaluate_all("elements => elements.forEach(details => details.open = true)")
    assert seen.page.locator("svg.drawing").count() > 5
    scripts = 1 if theme == "screen" else 0
    expected = {"pwned": None, "scripts": scripts, "styles": 1, "foreign": 0, "handlers": 0}
    assert seen.page.evaluate(HARMLESS) == expected
    assert (seen.console, seen.loaded) == ([], [])
    for size in (DESKTOP, PHONE) if theme == "screen" else ():
        seen.page.set_viewport_size(size)
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = set(seen.page.locator("dd").evaluate_all("elements => elements.map(element => element.textContent.trim())"))
    assert {as_shown(text) for text in PAYLOADS} <= shown


@pytest.mark.parametrize("theme", ["screen", "paper"])
def test_no_text_of_two_runs_becomes_an_element(tmp_path, theme):
    """Sections that show several runs side by side: scores, generation, judges."""
    runs = [hostile_run(tmp_path / name) for name in ("first", "second")]
    page = report_html(
        runs,
        [ALL, f"2 {ALL}"],
        version="1",
        comparison=hostile_comparison(),
        sensitivity=hostile_sensitivity(),
        per_group=2,
        theme=theme,
    )
    elements = Elements(page)
    assert elements.tags <= OF_REPORTS
    assert (_not_embedded(elements.bad), len(elements.scripts)) == ([], 1 if theme == "screen" else 0)
    for shown in ("models and settings", "the judges side by side", "results of the harness beside"):
        assert shown in page


def test_no_name_of_a_score_of_a_harness_becomes_an_element(tmp_path):
    """Scores of the harness beside ours, and the rules of a crosswalk."""
    samples = [
        Sample(
            str(number), references=["yes"], generated_answer="yes", metadata={f"lm-eval.{text}": 1.0 for text in TEXTS}
        )
        for number in range(3)
    ]
    rules = {"strict": {"rule": "none@1"}, "loose": {"rule": "squad@1.1"}}
    run = evaluate(
        samples,
        metrics=list(rules),
        variants=dict.fromkeys(rules, "exact_match"),
        options=rules,
        output=tmp_path / "run",
        progress=False,
    )
    page = report_html([run], [ALL], version="1", per_group=1)
    elements = Elements(page)
    assert elements.tags <= OF_REPORTS
    assert (_not_embedded(elements.bad), len(elements.scripts)) == ([], 1)
    assert page.count("ours - harness") == 1
    assert "lm-eval.&lt;script&gt;" in page


def _not_embedded(attributes: list[str]) -> list[str]:
    """Attributes that may do harm, without the images and sections of the page itself."""
    harmless = ("link href=data:image/svg+xml;base64,", "img src=data:image/", "a href=#")
    return [attribute for attribute in attributes if not attribute.startswith(harmless)]


def as_shown(text: str) -> str:
    """The text as a page shows it: cut, with codes for invisible characters."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} characters more)"
    return "".join(visible(c)[1:-1] if visible(c) != c else c for c in cut).strip()


# The viewer

TAGS = set(
    "html head meta title link script body a header div nav span button main h1 h2 h3 p br form label input select "
    "option datalist details summary fieldset legend table thead tbody tr th td caption img audio figure figcaption "
    "video dl dt dd ul ol li section mark bdi code strong svg line rect circle path text progress noscript dialog kbd "
    "wbr".split()
)
OF_REPORTS = TAGS | {"style", "footer", "section", "article", "path", "h4", "pre", "small"}
COMPARED = 16  # addresses that compare runs
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """The elements of a page, and attributes that could run code or lead to another server."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.bad: list[str] = []
        self.scripts: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.scripts += [dict(attributes).get("src")] if tag == "script" else []
        for name, value in attributes:
            target = (value or "").strip().lower()
            leads_out = name in ("href", "src", "action", "hx-get") and not target.startswith(("/", "#"))
            if name.startswith(("on", "hx-on", "style", "srcdoc", "formaction")) or leads_out:
                self.bad.append(f"{tag} {name}={value}")

    @property
    def strange_scripts(self) -> list[str | None]:
        """Scripts other than the viewer's own."""
        return [source for source in self.scripts if source not in {f"/assets/{name}" for name in ASSETS}]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("hostile") / "runs"
    evil = parent / EVIL
    evil.parent.mkdir(parents=True)
    for folder in (parent / "hostile", evil):
        hostile_run(folder)
    hostile_progress(parent)
    return parent


def addresses() -> list[str]:
    """Every page of the run, every fourth sample, and every text as a parameter of a page; with EVERY, of all."""
    evil = quote(EVIL, safe="/")
    pages = ["/", f"/run/{evil}", f"/samples/{evil}", f"/sample/{evil}?row=1", f"/pairs?run=hostile&run={evil}"]
    pages += [
        "/run/live",
        "/run/stopped",
        "/histograms/hostile",
        "/slices/hostile",
        f"/slices/{evil}",
        f"/histograms/{evil}",
    ]
    pages += ["/run/hostile", "/samples/hostile", "/samples/hostile?status=error", "/samples/hostile?sort=meteor"]
    pages += ["/samples/hostile?view=gallery", f"/samples/{evil}?view=gallery&sort=meteor&min.meteor=0.1"]
    pages += [f"/sample/hostile?row={row}&at={row}" for row in range(len(PAYLOADS))[:: 1 if EVERY else -4]]
    pages += comparing(evil)
    for code in (quote(text[:400], safe="") for text in TEXTS[::5]):
        pages += [f"/samples/hostile?view=gallery&meta.{code}={code}&meta.dialogue_type={code}"]
        pages += [
            f"/samples/hostile?min.{code}=0",
            f"/samples/hostile?view={code}",
            f"/sample/hostile?row=1&meta.{code}=x",
        ]
    for number, text in enumerate(TEXTS):
        asked = asked_by(text[:400])
        pages += asked if EVERY else [asked[number % 8]]  # the text reaches one of the eight, and each gets five texts
    return pages + [compared_by(number, evil) for number in range(len(TEXTS) if EVERY else COMPARED)]


def asked_by(text: str) -> list[str]:
    """The pages of one run and the list of runs, with the text as a name or a parameter."""
    code, lenient = quote(text, safe=""), quote(text)
    pages = [f"/samples/hostile?q={code}&meta={code}&value=x", f"/run/{code}", f"/?q={lenient}"]
    pages += [f"/?metric={lenient}&task={lenient}&state={lenient}", f"/?sort=score.{lenient}"]
    return pages + [f"/{route}/{code}" for route in ("histograms", "slices", "report")]


def compared_by(number: int, evil: str) -> str:
    """One of the addresses that compare runs, with a text as a parameter: the files of this run are large and slow."""
    code, both = quote(TEXTS[number][:400], safe=""), f"run=hostile&run={evil}"
    names = ("q", "number", "outcome", "sort", "status", "meta.dialogue_type", "min.d")
    pages = [f"/pairs?{both}&{name}={code}" for name in names]
    pages += [f"/pairs?{both}&min.a.{code}=0", f"/pairs?{both}&q=a&meta.{code}={code}", f"/pairs?run={code}"]
    pages += [f"/scatter?{both}&x={code}", f"/scatter/hostile?y={code}&x0={code}", f"/scatter/{code}"]
    pages += [f"/scatter/hostile?q={code}&x=meteor&x0=0", f"/compare?run={code}", f"/compare?run=hostile&run={code}"]
    assert len(pages) == COMPARED
    return pages[number % COMPARED]


def comparing(evil: str) -> list[str]:
    """The pages of two runs. Their names, the ids, the texts and the names of metrics and metadata are hostile."""
    both = f"run=hostile&run={evil}"
    pages = ["/compare", f"/compare?run={evil}", f"/compare?{both}", f"/compare/numbers?{both}", "/pairs", "/scatter"]
    pages += [f"/pairs?{both}&number=meteor&{query}" for query in ("sort=a", "status=error", "outcome=tie", "min.d=0")]
    pages += ["/scatter/hostile", f"/scatter/{evil}?x=meteor&y=hidden_metric&x0=0.1&y1=0.9"]
    pages += [f"/scatter?{both}&x=meteor&y=meteor&x0=0&y0=0", f"/scatter?{both}&x=meteor&y=hidden_metric"]
    return pages


def test_a_comparison_of_hostile_names_has_no_element_of_theirs(hostile):
    """The run folders cannot be compared, so the comparison itself is hostile too."""
    comparison = hostile_comparison()
    metrics = tuple(_between(metric) for metric in comparison.numbers)
    made = replace(comparison, runs=("hostile", EVIL), numbers=metrics)
    app = create_app(hostile, compare=lambda runs: made, accepts_host=host_check("127.0.0.1", PORT))
    browser = TestClient(app, base_url=f"http://{HOST}")
    address = f"run=hostile&run={quote(EVIL, safe='/')}"
    for path in (f"/compare?{address}", f"/compare/numbers?{address}"):
        response = browser.get(path)
        assert response.status_code == 200
        elements = Elements(response.text)
        assert elements.tags <= TAGS, elements.tags - TAGS
        assert (elements.bad, elements.strange_scripts) == ([], [])
        assert response.text.count('class="forest-mark') == len(PAYLOADS)


def _between(metric: MetricComparison) -> MetricComparison:
    """The comparison of the two runs that exist, with a verdict that is a hostile text."""
    systems = tuple(replace(metric.systems[0], name=name) for name in ("hostile", EVIL))
    return replace(metric, systems=systems, pairs=(replace(metric.pairs[0], first="hostile", second=EVIL),))


def test_no_text_becomes_an_element(hostile):
    browser = client(hostile)
    for address in addresses():
        response = browser.get(address)
        assert response.status_code < 500, address
        elements = Elements(response.text)
        assert elements.tags <= TAGS, (address, elements.tags - TAGS)
        assert (elements.bad, elements.strange_scripts) == ([], []), address
    assert browser.get(f"/run/{quote(EVIL, safe='/')}").status_code == 200


def test_no_text_becomes_an_element_of_a_fragment(hostile):
    browser = client(hostile)
    names = [*Run(hostile / "hostile").entries, *(text[:400] for text in TEXTS)]
    fragments = ["/progress/live", "/progress/stopped"]
    for start in range(0, len(names), 40):  # as many as one request may name
        asked = "&".join(f"metric={quote(name)}" for name in names[start : start + 40])
        fragments += [f"/spread/{run}?{asked}" for run in ("hostile", quote(EVIL, safe="/"))]
    for address in fragments:
        response = browser.get(address)
        assert response.status_code == 200, address
        elements = Elements(response.text)
        assert elements.tags <= TAGS, (address, elements.tags - TAGS)
        assert (elements.bad, elements.scripts) == ([], []), address


def test_no_text_is_executed_in_the_viewer(visit, hostile):
    evil = quote(EVIL, safe="/")
    with served(hostile) as address:
        seen = visit(address)
        for path in (
            "/",
            "/run/hostile",
            "/run/live",
            "/run/stopped",
            "/report/hostile",
            f"/report/{evil}",
            "/histograms/hostile",
            "/slices/hostile",
            "/samples/hostile",
            "/samples/hostile?view=gallery",
            f"/samples/hostile?meta.dialogue_type={quote(ALL[:400])}&min.meteor=2&q={quote(TEXTS[0])}",
            f"/sample/hostile?row={PAYLOADS.index(ALL)}",
            f"/pairs?run=hostile&run={evil}",
            f"/compare?run=hostile&run={evil}",
            "/compare",
            f"/pairs?run=hostile&run={evil}&number=meteor&sort=a&desc=1",
            f"/scatter/{evil}?x=meteor&y=hidden_metric&x0=0",
            f"/scatter?run=hostile&run={evil}&x=meteor&y=meteor&x0=0",
        ):
            seen.go(address + path, until="networkidle")
            assert seen.page.evaluate("window.__pwned") is None, path
        # Only missing images and audio files and a refused comparison are reported.
        assert {line for line in seen.console if "Failed to load resource" not in line} == set()


def test_invisible_characters_are_shown_as_codes(hostile):
    row = next(number for number, text in enumerate(PAYLOADS) if "\u202e" in text)
    text = client(hostile).get(f"/sample/hostile?row={row}").text
    assert "\u202e" not in text
    assert '<span class="code-point">U+202E</span>' in text
