"""Requests to the viewer: SQL in filters, paths out of the folder, texts that run as code, cells that run as formulas.

Each request has an expected answer: no server error, nothing from outside the folder, no element or attribute that a
text brought along, and for filters exactly the samples that Python finds.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from starlette.testclient import TestClient

from tests.hostile.campaign import FaultError, campaign, shared
from tests.hostile.mutations import TEXTS as ODD_TEXTS
from tests.report.hostile import TEXTS, hostile_progress, hostile_run
from tests.report.test_hostile_texts import TAGS, Elements
from tests.report.viewer.viewed import client, make_runs, raw_get, samples

SECRET = "the-secret-of-this-machine"
SQL = (
    "'",
    '"',
    "''",
    '""',
    ";",
    "--",
    "/*",
    "*/",
    ")",
    "(",
    " or 1=1",
    " union select * from read_text('{secret}')",
    " and 1=0",
    "%",
    "_",
    "\\",
    "$$",
    "?",
    "$1",
    "{{",
    "E'\\x27'",
    "; copy (select 1) to '{folder}/pwned.csv'",
    "; attach '{folder}/pwned.db'",
    "; install httpfs",
    "; pragma version",
    " or row in (select row from samples)",
    "a red",
    "star",
    "x",
    "\n",
    "\u0130",
    "ß",
    "\u212a",
)
CODE = ("Parser Error", "Binder Error", "Catalog Error", "Conversion Error", "Traceback", "Invalid Input Error")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
ROUTES = (
    *("/run/", "/samples/", "/sample/", "/media/", "/progress/", "/export/run.json/", "/export/samples.csv/"),
    *("/histograms/", "/slices/", "/spread/", "/report/", "/scatter/"),
)
COPIES = "run=hostile&run=hostile%20copy"
STEPS = (
    "..",
    "%2e%2e",
    "%252e%252e",
    "..;",
    "....",
    "..\\",
    "%5c..",
    ".",
    "~",
    "alba",
    "%00",
    "%c0%ae%c0%ae",
    "\u2025",
)


@cache
def site() -> tuple[TestClient, Path]:
    """Runs in a folder, and beside the folder a run and files that no request may reach."""
    folder = shared() / "site" / "runs"
    if not folder.exists():
        folder.mkdir(parents=True)
        make_runs(folder)
        hostile_run(folder / "hostile")
        hostile_run(folder / "hostile copy")
        hostile_progress(folder)
        outside = folder.parent / "outside"
        shutil.copytree(folder / "alba", outside)
        text = (outside / "results.json").read_text(encoding="utf-8")
        (outside / "results.json").write_text(text.replace("rouge_l", SECRET), encoding="utf-8")
        (folder.parent / "secret.txt").write_text(SECRET, encoding="utf-8")
    return client(folder), folder


def request(folder: Path, address: str) -> tuple[int, str]:
    """The answer of the viewer, after the checks that hold for every request."""
    browser, runs = site()
    (folder / "request.txt").write_text(address, encoding="utf-8", errors="surrogatepass")
    status, body = raw_get(browser, address)
    if status >= 500 or status == 0:
        raise FaultError(f"{address}: status {status}\n{body[-2000:]}")
    if SECRET in body or "root:x:0" in body:
        raise FaultError(f"{address}: shows what is outside the folder")
    if leaked := [code for code in CODE if code in body]:
        raise FaultError(f"{address}: {leaked}\n{body[-2000:]}")
    if strays := [path.name for path in runs.rglob("*pwned*")]:
        raise FaultError(f"{address}: wrote {strays}")
    return status, body


@campaign("sql", cases=250)
def attack_filters(random: Random, folder: Path) -> str | None:
    _, runs = site()
    text = "".join(random.choice(SQL) for _ in range(random.randint(1, 5)))
    text = text.replace("{secret}", str(runs.parent / "secret.txt")).replace("{folder}", str(runs))
    if random.random() < 0.4:
        return _search(folder, text, random.choice(("answer", "question", "references", "id")))
    if random.random() < 0.3:
        return _choose(folder, random, text)
    name, value = quote(text, safe=""), quote(random.choice(("", "ru", "1", text)), safe="")
    parameters = random.choice(
        (
            f"meta={name}&value={value}",
            f"meta=language&value={name}",
            f"meta.{name}={value}&meta.{name}=ru&view=gallery",
            f"meta.language={name}&meta.language=ru&meta.place=1",
            f"view={name}",
            f"min.rouge_l=0&max.{name}=1&sort=bleu",
            f"sort={name}",
            f"metric={name}&sort=score.{name}",
            f"status={name}",
            f"in={name}&q=a",
            f"min.{name}=0",
            f"max.rouge_l={name}",
            f"offset={name}",
            f"sort=rouge_l&desc={name}",
            f"row={name}",
            f"number={name}",
            f"outcome={name}&number=bleu",
            f"min.a.{name}=0&max.b.rouge_l=1",
            f"min.d={name}",
            f"x={name}&y=rouge_l",
            f"x=rouge_l&y=bleu&x0=0&y1={name}",
            f"q={name}&x=rouge_l&x0=0",
        )
    )
    of_run = ("/samples/alba", "/sample/alba", "/export/samples.csv/alba", "/", "/spread/alba", "/scatter/alba")
    of_two = ("/pairs", "/pairs.csv", "/scatter")
    route = random.choice((*of_run, *of_two))
    both = "run=alba&run=boreas&" if route in of_two else ""
    status, _ = request(folder, f"{route}?{both}{parameters}")
    return f"status {status}"


@cache
def stored() -> list[dict[str, Any]]:
    media = shared() / "media"
    media.mkdir(exist_ok=True)
    return [
        {
            "id": sample.id,
            "answer": sample.generated_answer or "",
            "question": sample.question or "",
            "references": "\n".join(sample.references or ()),
            "metadata": {key: str(value) for key, value in sample.metadata.items()},
        }
        for sample in samples(0, media)
    ]


def _search(folder: Path, text: str, field: str) -> str:
    status, body = request(folder, f"/export/samples.json/alba?q={quote(text, safe='')}&in={field}")
    if status != 200:
        return f"status {status}"
    shown = {row["id"] for row in json.loads(body)}
    wanted = {row["id"] for row in stored() if text.strip().lower() in row[field].lower()}
    if text.isascii() and shown != wanted:
        raise FaultError(f"a search for {text!r} in {field} shows {len(shown)} samples, not {len(wanted)}")
    return "searched"


def _choose(folder: Path, random: Random, text: str) -> str:
    """Values of metadata, one of them hostile: exactly the samples that Python finds."""
    key = random.choice(("language", "place", "a/b~c", text))
    values = [random.choice(("en", "ru", "1", "x", text)) for _ in range(random.randint(1, 3))]
    other = random.choice(("en", "ru", text))
    parameters = [(f"meta.{key}", value) for value in values] + [("meta.language", other)]
    status, body = request(folder, f"/export/samples.json/alba?{urlencode(parameters)}")
    if status != 200:
        return f"status {status}"
    wanted: dict[str, set[str]] = {}
    for name, value in parameters:
        wanted.setdefault(name.removeprefix("meta."), set()).add(value)
    rows = [row for row in stored() if all(row["metadata"].get(name) in chosen for name, chosen in wanted.items())]
    if {row["id"] for row in json.loads(body)} != {row["id"] for row in rows}:
        raise FaultError(f"{parameters} show other samples than {len(rows)}")
    return "chosen"


@campaign("paths", cases=600)
def attack_paths(random: Random, folder: Path) -> str | None:
    site()
    steps = [random.choice(STEPS) for _ in range(random.randint(1, 6))]
    ending = random.choice(
        ("outside", "secret.txt", "etc/passwd", "media/red.png", "results.json", "", "alba/run.json")
    )
    separator = random.choice(("/", "/", "/", "//", "%2f", "\\", "%5c", "/./"))
    path = separator.join((*steps, ending))
    if random.random() < 0.3:
        path = random.choice(("/", "%2f", "file:", "//", "C:")) + path
    route = random.choice((*ROUTES, "/assets/", "/"))
    query = random.choice(("", "?row=0", "?row=1&which=image", f"?run={quote(path)}&run=alba"))
    status, _ = request(folder, f"{route}{path}{query}")
    if random.random() < 0.3:
        page = random.choice(("/compare/numbers", "/compare", "/pairs", "/scatter"))
        status, _ = request(folder, f"{page}?run={path}&run=alba")
    return f"status {status}"


@campaign("elements", cases=50)
def attack_elements(random: Random, folder: Path) -> str | None:
    """Texts in every parameter and in every field of a run: no page has an element that a text brought along."""
    text = hostile_text(random)[:450]
    code = quote(text, safe="", errors="replace")
    address = random.choice(
        (
            f"/samples/hostile?q={code}&meta={code}&value={code}",
            f"/samples/hostile?view=gallery&meta.{code}={code}&meta.dialogue_type={code}&q=a",
            f"/samples/hostile?view=gallery&min.meteor=0.{random.randrange(10)}&offset={random.randrange(60)}",
            f"/samples/hostile?view={code}",
            f"/run/{code}",
            f"/?q={code}&task={code}&state={code}",
            f"/?metric={code}&metric=rouge_l&sort=score.{code}&offset={code}",
            f"/?metric={code}",
            f"/histograms/{code}",
            f"/slices/{code}",
            random.choice(("/histograms/hostile", "/slices/hostile", "/run/live", "/run/stopped")),
            f"/samples/hostile?sort={code}",
            f"/samples/hostile?min.{code}=1",
            f"/sample/hostile?row={random.randrange(60)}&q={code}",
            f"/pairs?run=hostile&run={code}",
            f"/compare?run=alba&run={code}",
            f"/pairs?{COPIES}&number=meteor&q={code}&meta.{code}={code}",
            f"/pairs?{COPIES}&number={code}&sort={code}",
            f"/pairs?{COPIES}&min.a.{code}=0&outcome={code}",
            f"/scatter?{COPIES}&x=meteor&y={code}&x0={code}",
            f"/scatter?{COPIES}&x=meteor&y=meteor&x0=0.{random.randrange(10)}",
            f"/scatter/hostile?x={code}",
            f"/scatter/hostile?x=meteor&y=hidden_metric&q={code}&y1=0.{random.randrange(10)}",
            f"/compare?{COPIES}",
            f"/compare?run={code}",
            "/run/hostile",
            f"/samples/hostile?offset={random.randrange(60)}",
        )
    )
    status, body = request(folder, address)
    if "<html" in body:
        elements = Elements(body)
        if strange := elements.tags - TAGS:
            raise FaultError(f"{address}: elements {strange}")
        if elements.bad or elements.strange_scripts:
            raise FaultError(f"{address}: {elements.bad}, scripts {elements.strange_scripts}")
    return f"status {status}"


def hostile_text(random: Random) -> str:
    """Pieces of texts that try to leave their place in a page."""
    pieces = []
    for _ in range(random.randint(1, 3)):
        text = random.choice((*TEXTS, *ODD_TEXTS))
        start = random.randrange(len(text) + 1)
        pieces.append(text if random.random() < 0.5 else text[start : start + random.randint(1, 40)])
    return random.choice(("", "\n", '"', "'", ">", "<!--", "`", "\0", "&")).join(pieces)


@campaign("cells", cases=50)
def attack_cells(random: Random, folder: Path) -> str | None:
    """Every CSV export: no text cell starts like a formula."""
    code = quote(hostile_text(random)[:200], safe="", errors="replace")
    address = random.choice(
        (
            f"/export/samples.csv/hostile?q={code}",
            "/export/samples.csv/hostile",
            f"/export/samples.csv/hostile?sort=meteor&offset={random.randrange(5)}",
            "/export/run.csv/hostile",
            "/export/run.csv/hostile?table=slices",
            f"/runs.csv?metric={code}",
            "/runs.csv",
            "/compare/numbers.csv?run=alba&run=boreas",
            f"/pairs.csv?{COPIES}&number=meteor",
            f"/pairs.csv?run=alba&run=boreas&number={random.choice(('rouge_l', 'bleu', 'cider_d'))}",
        )
    )
    status, body = request(folder, address)
    if status != 200:
        return f"status {status}"
    for row in csv.reader(io.StringIO(body, newline="")):
        for cell in row:
            if cell.lstrip(" ").startswith(FORMULA) and not _is_number(cell):
                raise FaultError(f"{address}: the cell {cell[:100]!r} is a formula")
    return "read"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
