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

from tools.reference import commands, pages, public_modules

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
]
WRITTEN = [page for page in PAGES if page not in pages()]  # by hand
# Flags of other programs, and lines that call our benchmarks and tools.
OTHER_FLAGS = {"--help", "--machine", "--version", "--upgrade", "--no-deps", "--check"}
OTHER_PROGRAMS = re.compile(
    r"\b(?:python3? -m (?!multimodal_eval)|python3? (?!-m)|(?:pipx?|uvx?|bash|java|git|chromium|sha256sum|gh) )"
)
ENTRY_POINTS = {f"multimodal_eval.{group}" for group in ("metrics", "rules", "synonyms", "generators")}
CALL = re.compile(r"\bmmeval (?P<command>[a-z]+)\b(?P<rest>[^`\n]*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def short(page: Path) -> str:
    return str(page.relative_to(ROOT))


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


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_import_is_public(page):
    private = [f"{module}: {name}" for module, name in imports(page) if not is_public(module, name)]
    assert private == []


@pytest.mark.parametrize("page", WRITTEN, ids=short)
def test_every_dotted_name_is_public(page):
    for dotted in set(re.findall(r"\bmultimodal_eval(?:\.\w+)+", page.read_text(encoding="utf-8"))) - ENTRY_POINTS:
        module, _, name = dotted.rpartition(".")
        assert is_public(dotted, None) or is_public(module, name), dotted


@pytest.mark.parametrize("module", public_modules())
def test_public_names_exist_and_are_documented(module):
    loaded = import_module(module)
    assert loaded.__doc__
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


@pytest.mark.parametrize("page", pages(), ids=short)
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


@pytest.mark.parametrize("page", WRITTEN, ids=short)
def test_every_flag_in_the_documents_exists(page):
    known = flags()
    anywhere = set().union(*known.values()) | OTHER_FLAGS
    for line in page.read_text(encoding="utf-8").splitlines():
        if OTHER_PROGRAMS.search(line):
            continue
        assert set(FLAG.findall(line)) <= anywhere, line
        for call in CALL.finditer(line):
            if call["command"] in known:
                of_command = set().union(*(value for name, value in known.items() if name.startswith(call["command"])))
                shown = call["rest"].partition("#")[0].partition(" | ")[0]
                assert set(FLAG.findall(shown)) <= of_command | OTHER_FLAGS, line


def test_every_flag_is_documented():
    """On the generated page; a flag may be explained in a guide too."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for name, of_command in flags().items():
        section = page.partition(f"## {f'mmeval {name}'.strip()}\n")[2].partition("\n## ")[0]
        assert of_command <= set(FLAG.findall(section)), name
