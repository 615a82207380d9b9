"""The documentation site.

    python -m tools.site update [PAGE …]   # execute pages and write the current outputs into them
    python -m tools.site check [PAGE …]    # execute pages; fail if a block fails, is not marked, or has a stale output
    python -m tools.site build OUT         # build the site in OUT/VERSION, check its links, print what was executed

Without pages, all of README.md and docs/ are taken, apart from those that need fetched models (--weights: these too).
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tools.site.blocks import parse
from tools.site.execute import execute
from tools.site.pages import all_pages, models_home, name_of


@click.group(help=__doc__)
def main() -> None:
    """Update, check or build the documentation."""


@main.command()
@click.argument("pages", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--weights", is_flag=True, help="Pages that need fetched models, too.")
def update(pages: tuple[Path, ...], weights: bool) -> None:
    """Execute pages and write the current outputs into them."""
    sys.exit(_executed(pages, weights, writes=True))


@main.command()
@click.argument("pages", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--weights", is_flag=True, help="Pages that need fetched models, too.")
def check(pages: tuple[Path, ...], weights: bool) -> None:
    """Execute pages, and fail if an output is stale or a block is neither executed nor marked."""
    sys.exit(_executed(pages, weights, writes=False))


@main.command("build")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--version", help="The version that the site is about.  [default: that of the package, or dev]")
@click.option("--weights", is_flag=True, help="Execute pages that need fetched models, too.")
@click.option("--fresh", is_flag=True, help="Execute all pages, also those that the tests have executed.")
def build_site(out: Path, version: str | None, weights: bool, fresh: bool) -> None:
    """Build the site in OUT/VERSION."""
    from multimodal_eval import __version__
    from tools.site.build import SiteError, build

    chosen = version or ("dev" if "dev" in __version__ else __version__)
    try:
        built = build(out, chosen, weights, fresh)
    except SiteError as error:
        sys.exit(str(error))
    print(built.summary())
    print(f"site: {out / chosen / 'index.html'}")


def _executed(pages: tuple[Path, ...], weights: bool, writes: bool) -> int:
    status = executed = not_run = 0
    for path in [page.resolve() for page in pages] or all_pages():
        text = path.read_text(encoding="utf-8")
        needs = parse(text).needs
        if "weights" in needs and not (weights or pages):
            print(f"{name_of(path)}: needs fetched models, not executed; --weights executes it")
            continue
        with models_home(needs) as home:
            outcome = execute(text, name_of(path), home)
        executed += outcome.executed
        not_run += len(outcome.not_run)
        for problem in outcome.problems:
            print(problem, file=sys.stderr)
        if writes and outcome.text != text:
            path.write_text(outcome.text, encoding="utf-8")
            print(f"{name_of(path)}: updated")
        elif not writes:
            for stale in outcome.stale:
                print(stale, file=sys.stderr)
        status |= bool(outcome.problems) or (not writes and bool(outcome.stale))
    print(f"{executed} blocks executed, {not_run} not run")
    return status


if __name__ == "__main__":
    main()
