"""Write the sources of the site into a folder: pages with outputs and links as the site needs them, generated pages."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tools.notebooks import notebooks, page
from tools.site.blocks import Block, parse
from tools.site.generated.indexes import TOP_LEVEL, home_cards, navigation, title_of
from tools.site.generated.outputs import readable
from tools.site.generated.toctree import toctree
from tools.site.pages import DOCS, ROOT
from tools.site.sections import SECTIONS

LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
MARK = re.compile(r"^ *<!--.*?--> *\n?", re.MULTILINE | re.DOTALL)


def stage(pages: dict[Path, str], generated: dict[str, str], folder: Path) -> None:
    """Write the site's sources. `pages` and `generated`: the texts of the pages, with the outputs of now."""
    for name, text in generated.items():
        _write(folder / name, displayed(readable(text)))
    for path, text in pages.items():
        target = site_path(path)
        if path == ROOT / "README.md" or (folder / target).exists():
            continue
        _write(folder / target, relinked(displayed(text), path, folder) + _added(target))
    shutil.copytree(DOCS / "images", folder / "images", dirs_exist_ok=True)
    shutil.copy(DOCS / "run.schema.json", folder)


def stage_notebooks(folder: Path) -> None:
    """Write the notebooks as pages, with their stored outputs, which `tools.notebooks` compares with those of now."""
    for path in notebooks():
        _write(folder / site_path(path), relinked(page(path), path, folder))


def site_path(path: Path) -> Path:
    """Where a page of the project is in the site."""
    if path.suffix == ".ipynb":
        return path.relative_to(DOCS).with_suffix(".md")
    for name, file in TOP_LEVEL.items():
        if path == ROOT / file:
            return Path(f"{name}.md")
    return path.relative_to(DOCS) if path.is_relative_to(DOCS) else Path("index.md")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _added(target: Path) -> str:
    """The navigation below a page."""
    if target == Path("index.md"):
        return home_cards()
    if target == Path("metrics.md"):
        return toctree(f"{_metric(path)} <metrics/{path.stem}>" for path in sorted((DOCS / "metrics").glob("*.md")))
    for section in SECTIONS:
        if section.folder and target == Path(section.folder, "index.md"):
            return navigation(section)
    return ""


def _metric(card: Path) -> str:
    """The name of a metric, from the title of its card."""
    return title_of(card).removeprefix("Metric Card for ")


def displayed(text: str) -> str:
    """A page whose blocks look alike: commands with a prompt, outputs marked, the reason of what is not run."""
    lines = text.split("\n")
    for block in reversed(parse(text).blocks):
        if block.output is not None:
            _mark_output(lines, block.output)
        if block.kind == "command":
            _with_prompt(lines, block)
        if block.marks.not_run is not None:
            is_indented = not block.language and block.kind in ("command", "unknown")
            indent = block.prefix[:-4] if is_indented else block.prefix
            lines.insert(block.start - (not is_indented), f"{indent}{_reason(block.marks.not_run)}\n")
    return MARK.sub("", "\n".join(lines))


def _reason(reason: str) -> str:
    """Why a block is not run, as HTML."""
    text = reason.replace("&", "&amp;").replace("<", "&lt;").rstrip(".")
    shown = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    return f'<p class="not-run">Not executed when this site is built: {shown}.</p>'


def _mark_output(lines: list[str], output: Block) -> None:
    lines[output.start - 1] = f"{output.prefix}```{{code-block}} text\n{output.prefix}:class: output\n"


def _with_prompt(lines: list[str], block: Block) -> None:
    """An indented block of commands as a console."""
    prefix = block.prefix[:-4]
    shown = [line.removeprefix(block.prefix) for line in lines[block.start : block.end]]
    is_continued = False
    for number, line in enumerate(shown):
        shown[number] = line if is_continued or line.startswith("$ ") or not line else f"$ {line}"
        is_continued = line.endswith("\\")
    lines[block.start : block.end] = [f"{prefix}{line}" for line in ("```console", *shown, "```")]


def relinked(text: str, page: Path, folder: Path) -> str:
    """A page with links as they are in the site. Files of the project are copied beside the pages."""

    def replaced(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if not target or "://" in target or target.startswith(("mailto:", "$")):
            return match[0]
        path = (page.parent / target).resolve()
        if path.is_dir() or not path.exists():
            return match["text"] if path.is_dir() else match[0]
        place = _place(path, folder)
        relative = os.path.relpath(folder / place, (folder / site_path(page)).parent).replace(os.sep, "/")
        return f"{match['image']}[{match['text']}]({relative}{f'#{anchor}' if anchor else ''})"

    pieces = _outside_code(text)
    return "".join(LINK.sub(replaced, piece) if is_prose else piece for is_prose, piece in pieces)


def _place(path: Path, folder: Path) -> Path:
    """The path of a file in the site; other files of the project are copied."""
    if path.is_relative_to(DOCS) or path.suffix == ".md":
        return site_path(path)
    place = Path("files") / path.relative_to(ROOT)
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder / place)
    return place


def _outside_code(text: str) -> list[tuple[bool, str]]:
    """The text in pieces: (is it prose?, piece)."""
    pieces: list[tuple[bool, str]] = []
    is_code = False
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("```"):
            if not is_code:
                pieces.append((True, "".join(lines)))
                lines = [line]
            else:
                pieces.append((False, "".join([*lines, line])))
                lines = []
            is_code = not is_code
        else:
            lines.append(line)
    pieces.append((not is_code, "".join(lines)))
    return pieces
