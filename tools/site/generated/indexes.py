"""The index pages of sections, and the cards of the home page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tools.notebooks import page
from tools.site.generated.toctree import toctree
from tools.site.pages import DOCS, ROOT
from tools.site.sections import SECTIONS, Section, named

PURPOSE = re.compile(r"\]\(([\w-]+)\.md\): (.+(?:\n  .+)*)")
TOP_LEVEL = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md", "security": "SECURITY.md"}
GENERATED = {
    "commands": ("Commands", "Every command and option."),
    "api": ("Python API", "Every public name, by module."),
    "benchmarks": ("Benchmarks", "Those that `mmeval run NAME` knows, each with its prompts, rule and traps."),
    "schema": ("Settings", "Every key of the configuration file."),
    "codes": ("Codes", "Problems, warnings and exceptions by code."),
}


def index_pages() -> dict[str, str]:
    """The index of each section that has none in docs/."""
    return {f"{section.name}.md": _index(section) for section in SECTIONS if not _own_index(section)}


def home_cards() -> str:
    """Cards into the sections, and the navigation of the whole site."""
    cards = "".join(
        f":::{{grid-item-card}} {section.title}\n:link: {index_of(section)}\n:link-type: doc\n{section.about}\n:::\n"
        for section in SECTIONS
    )
    grid = f"\n::::{{grid}} 1 2 2 4\n:gutter: 3\n\n{cards}::::\n"
    return grid + toctree((index_of(section) for section in SECTIONS), depth=2)


def index_of(section: Section) -> str:
    """The name of a section's index page."""
    return f"{section.folder}/index" if _own_index(section) else section.name


def navigation(section: Section) -> str:
    """The list of pages for a section that has its own index in docs/."""
    folder = f"{section.folder}/"
    return toctree(name.removeprefix(folder) if name.startswith(folder) else f"../{name}" for name in named(section))


def _own_index(section: Section) -> bool:
    return bool(section.folder) and (DOCS / section.folder / "index.md").exists()


def _index(section: Section) -> str:
    parts = [f"# {section.title}\n\n{section.about}\n"]
    groups = dict(section.groups)
    if section.folder:
        listed = {page for pages in section.groups.values() for page in pages}
        groups = {"": [name for name in named(section) if name not in listed], **groups}
    for heading, names in groups.items():
        if heading:
            parts.append(f"\n## {heading}\n")
        parts.append("\n" + "".join(_item(name) for name in names))
    return "".join(parts) + toctree(named(section))


def _item(name: str) -> str:
    title, about = described(name)
    return f"- [{title}]({name}.md){f': {about}' if about else ''}\n"


def described(name: str) -> tuple[str, str]:
    """The title of a page, and what it is for."""
    if name in GENERATED:
        return GENERATED[name]
    if name == "README":
        return "All pages", "The index by topic."
    path = ROOT / TOP_LEVEL[name] if name in TOP_LEVEL else DOCS / f"{name}.md"
    return title_of(path), _purposes().get(name, "")


def title_of(path: Path) -> str:
    """The title of a page, or of the notebook that the page is made of."""
    notebook = path.with_suffix(".ipynb")
    text = page(notebook) if notebook.exists() else path.read_text(encoding="utf-8")
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


@cache
def _purposes() -> dict[str, str]:
    """What the index of docs/ says of a page."""
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    return {name: text.strip() for name, text in PURPOSE.findall(index) if "](" not in text}
