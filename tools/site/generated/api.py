"""A page per public module, and their index, by package."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module

from tools.reference import module_section, public_modules, summary

# The index has the modules; in the navigation of every page they would be too many.
ORPHAN = "---\norphan: true\n---\n\n"
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
    lines = module_section(import_module(name)).lstrip("\n").split("\n")
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if not is_code and line.startswith(("## ", "### ")):
            lines[number] = line[1:]
    return ORPHAN + "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
