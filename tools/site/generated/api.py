"""A page per public module, and their index, by package.

Docstrings become Markdown: a session with `>>>` is a block that is executed, an indented block a formula or a layout.
Indented Python code is left as it is, which the execution of the page refuses: it should be a session.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from importlib import import_module

from tools.reference import module_section, public_modules, summary
from tools.site.blocks import parse

# The index has the modules; in the navigation of every page they would be too many.
ORPHAN = "---\norphan: true\n---\n\n"
SESSION = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
PROGRAM = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.For, ast.Import, ast.ImportFrom)
HEAD = """# Python API

Every name on these pages is public: it stays, or a release note says what replaces it. Everything else is private, even
if Python can import it. Most programs need only [`multimodal_eval`](api/multimodal_eval.md); the other modules have the
parts it is made of.
"""


def api_pages() -> dict[str, str]:
    """The pages by path."""
    packages: dict[str, list[str]] = defaultdict(list)
    for name in public_modules():
        packages[".".join(name.split(".")[:2])].append(name)
    parts = [HEAD]
    for package, names in packages.items():
        rows = "".join(f"| [`{name}`](api/{name}.md) | {_cell(summary(import_module(name)))} |\n" for name in names)
        parts.append(f"\n## {package}\n\n| module | what it has |\n|---|---|\n{rows}")
    return {
        "api.md": "".join(parts),
        **{f"api/{name}.md": _page(name) for name in public_modules()},
    }


def _page(name: str) -> str:
    text = SESSION.sub(r"```pycon\n\g<0>\n```", module_section(import_module(name)).lstrip("\n"))
    lines = _fenced(text).split("\n")
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if not is_code and line.startswith(("## ", "### ")):
            lines[number] = line[1:]
    return ORPHAN + "\n".join(lines)


def _fenced(text: str) -> str:
    """A page whose indented blocks are marked as plain text, apart from programs."""
    lines = text.split("\n")
    for block in reversed(parse(text).blocks):
        if not block.language and block.prefix and not _is_program(block.text):
            shown = textwrap.dedent("\n".join(lines[block.start : block.end]))
            lines[block.start : block.end] = ["```text", shown, "```"]
    return "\n".join(lines)


def _is_program(text: str) -> bool:
    """Whether a block is Python code that does something; a formula is at most an assignment."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return any(isinstance(node, PROGRAM) or _is_call(node) for node in body)


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
