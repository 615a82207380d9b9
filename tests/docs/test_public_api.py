"""What the documents name exists and is public: imports, dotted names, command-line flags."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from multimodal_eval.cli.layers import flag_of
from tools.reference import PAGES as PAGES_OF_THE_REFERENCE
from tools.reference import commands, pages, public_modules

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "AGENTS.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
# Flags of other programs, and lines that call our benchmarks and tools.
OTHER_FLAGS = {"--help", "--machine", "--version", "--upgrade", "--no-deps", "--check"}
OTHER_PROGRAMS = re.compile(
    r"\b(?:python3? -m (?!multimodal_eval)|python3? (?!-m)|(?:pipx?|uvx?|bash|java|git|chromium|sha256sum|gh) )"
)
ENTRY_POINTS = {f"multimodal_eval.{group}" for group in ("metrics", "rules", "synonyms", "generators", "benchmarks")}
CALL = re.compile(r"\bmmeval (?P<command>[a-z]+)\b(?P<rest>[^`\n]*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def short(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def written() -> list[Path]:
    """The pages that are written by hand."""
    pages_by_hand = [page for page in PAGES if page not in PAGES_OF_THE_REFERENCE.values()]
    assert len(pages_by_hand) > 80
    return pages_by_hand


def imports(page: Path) -> Iterator[tuple[str, str | None]]:
    """(module, name) of every import of ours in the page's Python code."""
    text = page.read_text(encoding="utf-8")
    blocks = [text] if page.suffix == ".py" else re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names if alias.name.startswith("multimodal_eval"))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("multimodal_eval"):
                yield from ((node.module or "", alias.name) for alias in node.names)


def is_public(module: str, name: str | None) -> bool:
    if module not in public_modules():
        return False
    return name is None or name in import_module(module).__all__


def test_every_import_is_public():
    assert [
        f"{short(page)}: {module}: {name}"
        for page in PAGES
        for module, name in imports(page)
        if not is_public(module, name)
    ] == []


def test_every_dotted_name_is_public(written):
    private = []
    for page in written:
        for dotted in set(re.findall(r"\bmultimodal_eval(?:\.\w+)+", page.read_text(encoding="utf-8"))) - ENTRY_POINTS:
            module, _, name = dotted.rpartition(".")
            if not is_public(dotted, None) and not is_public(module, name):
                private.append(f"{short(page)}: {dotted}")
    assert private == []


def undocumented(module: str) -> Iterator[str]:
    """What is wrong with the public names of a module."""
    loaded = import_module(module)
    if not loaded.__doc__:
        yield f"{module} has no docstring"
    if len(set(loaded.__all__)) != len(loaded.__all__):
        yield f"{module}.__all__ has a name twice"
    for name in loaded.__all__:
        if not hasattr(loaded, name):
            yield f"{module}.{name} does not exist"
            continue
        value = getattr(loaded, name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and not value.__doc__:
            yield f"{module}.{name} has no docstring"


def test_public_names_exist_and_are_documented():
    assert len(public_modules()) > 300
    assert [fault for module in public_modules() for fault in undocumented(module)] == []


@pytest.mark.parametrize("page", PAGES_OF_THE_REFERENCE.values(), ids=short)
def test_the_reference_pages_are_up_to_date(page):
    assert page.read_text(encoding="utf-8") == pages()[page], "run: python -m tools.reference"


def flags() -> dict[str, set[str]]:
    """The long flags of each command, by its name without `mmeval`."""
    return {
        name.removeprefix("mmeval").strip(): {
            flag
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag.startswith("--")
        }
        for name, command, _ in commands()
    }


def test_every_flag_has_a_help_text():
    for name, command, _ in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.opts)


def unknown_flags(page: Path, known: dict[str, set[str]]) -> Iterator[str]:
    """The lines of a page with a flag that does not exist, or not in the command before it."""
    anywhere = set().union(*known.values()) | OTHER_FLAGS
    for line in page.read_text(encoding="utf-8").splitlines():
        if OTHER_PROGRAMS.search(line):
            continue
        if not set(FLAG.findall(line)) <= anywhere:
            yield line
        for call in CALL.finditer(line):
            if call["command"] in known:
                of_command = set().union(*(value for name, value in known.items() if name.startswith(call["command"])))
                shown = call["rest"].partition("#")[0].partition(" | ")[0]
                if not set(FLAG.findall(shown)) <= of_command | OTHER_FLAGS:
                    yield line


def test_every_flag_in_the_documents_exists(written):
    known = flags()
    assert [f"{short(page)}: {line}" for page in written for line in unknown_flags(page, known)] == []


def test_every_flag_is_documented():
    """On the generated page; a flag may be explained in a guide too."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shown = {name: {flag_of(option) for option in command.shown()} for name, command, _ in commands()}
    for name, of_command in shown.items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert of_command <= set(FLAG.findall(section)), name
