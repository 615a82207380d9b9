"""The generated pages: every command, setting, code and public module has its place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from multimodal_eval.core.problem_codes import PROBLEM_CODES
from multimodal_eval.lint.findings import CODES
from multimodal_eval.run.config import json_schema
from tools.reference import commands, public_modules
from tools.site.generated import generated_pages
from tools.site.sections import SECTIONS, named

SOURCE = Path(__file__).parents[3] / "src"
# Functions that take the code of a problem as their first or second argument.
CALLS = re.compile(
    r"(?:^|\.)(?:Problem|RefusedError|Fault|CroissantError|_refusal|_refuse_failure|_BadScoreError)$|problems\.add$"
)
CODE = re.compile(r"[A-Z]{2,}(?:_[A-Z]+)*")


@pytest.fixture(scope="module")
def pages():
    return generated_pages()


def test_every_command_has_a_page_with_its_options(pages):
    for name, command, context in commands():
        if name != "mmeval":
            page = pages[f"commands/{name.removeprefix('mmeval ').replace(' ', '-')}.md"]
            assert page.startswith(f"# {name}\n")
            for parameter in command.shown():
                assert (parameter.get_help_record(context) or ("",))[0].replace(
                    "|", "\\|"
                ) in page or not parameter.help


def test_every_public_module_has_a_page(pages):
    assert {f"api/{name}.md" for name in public_modules()} <= set(pages)
    assert all(f"(api/{name}.md)" in pages["api.md"] for name in public_modules())


def test_every_setting_is_listed(pages):
    for name, definition in json_schema()["$defs"].items():
        section = pages["schema.md"].partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(definition["properties"])


def test_every_code_has_an_anchor_of_its_own(pages):
    headings = re.findall(r"^### (.+)$", pages["codes.md"], re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert {*PROBLEM_CODES, *CODES} <= {heading.partition(" ")[0] for heading in headings}
    assert "TRUNCATED (warning)" in headings
    assert "InputError" in headings


def used_codes() -> set[str]:
    codes = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and CALLS.search(ast.unparse(node.func)):
                named = [word.value for word in node.keywords if word.arg == "code"]
                for value in [*node.args[:1], *named]:
                    if isinstance(value, ast.Constant) and CODE.fullmatch(str(value.value)):
                        codes.add(str(value.value))
    return codes


def test_every_code_of_a_problem_is_explained():
    assert len(used_codes()) > 30
    assert used_codes() - {"REPORTED"} <= set(PROBLEM_CODES)  # REPORTED is never shown
    source = "".join(
        file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py") if file.name != "problem_codes.py"
    )
    assert [code for code in PROBLEM_CODES if not re.search(rf"\b{code}\b", source)] == []


def test_no_page_is_in_two_sections():
    listed = [name for section in SECTIONS for name in named(section)]
    assert len(listed) == len(set(listed))
