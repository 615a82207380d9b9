"""Print facts about the source tree and draw its imports: python -m tools.layers [--names]

Prints the size of src and tests, the number of modules that only one other module imports, and the number of untyped
dictionaries. `--names` also lists the modules. Writes docs/images/layers.svg, which CONTRIBUTING.md shows.
"""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "multimodal_eval"
DIAGRAM = ROOT / "docs" / "images" / "layers.svg"
MAX_LINES = 400  # of a file
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the package: its name below the package, its size, and the modules that it imports."""

    name: str
    lines: int
    functions: tuple[int, ...]  # lines of each
    untyped: int
    imports: frozenset[str]

    @property
    def subpackage(self) -> str:
        return self.name.partition(".")[0]


def read_modules(package: Path) -> list[Module]:
    """All modules of the package, ordered by name."""
    files = {_name(path, package): path for path in package.rglob("*.py")}
    return [_read(name, files) for name in sorted(files)]


def _name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")


def _read(name: str, files: Mapping[str, Path]) -> Module:
    text = files[name].read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Module(
        name,
        text.count("\n"),
        tuple((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions),
        len(UNTYPED.findall(text)),
        frozenset(_imported(nodes, files)) - {name},
    )


def _imported(nodes: Iterable[ast.AST], files: Mapping[str, Path]) -> Iterator[str]:
    """Imported modules of the package, from anywhere in a file. Imports of the package itself do not count."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            base = node.module.removeprefix(PACKAGE).lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield inner if inner in files else base


def importers(modules: Sequence[Module]) -> dict[str, list[str]]:
    """The importers of each module."""
    by_module: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in module.imports:
            by_module[name].append(module.name)
    return by_module


def layers() -> list[list[str]]:
    """The subpackages of each layer, from top to bottom, as in pyproject.toml. Those of one layer are independent."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    listed = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[subpackage.strip() for subpackage in layer.split("|")] for layer in listed]


def print_facts(modules: Sequence[Module], *, names: bool) -> None:
    """Print sizes, and counts that should decrease."""
    functions = [lines for module in modules for lines in module.functions]
    by_module = importers(modules)
    single = {module.name: by_module[module.name][0] for module in modules if len(by_module[module.name]) == 1}
    print(f"files in src                   {len(modules):>7,}")
    print(f"lines in src                   {sum(module.lines for module in modules):>7,}")
    print(f"median file                    {median(module.lines for module in modules):>7.0f} lines")
    print(f"median function                {median(functions):>7.0f} lines, of {len(functions):,}")
    print(f"dict[str, Any], Mapping[...]   {sum(module.untyped for module in modules):>7,}")
    print(f"modules with one importer      {len(single):>7,}")
    if names:
        for name, importer in single.items():
            print(f"    {name} <- {importer}")
    for folder in ("src", "tests"):
        long = sorted((lines, path) for path, lines in _long_files(ROOT / folder))
        print(f"files over {MAX_LINES} lines in {folder:<10} {len(long):>5,}")
        for lines, path in reversed(long):
            print(f"    {path} {lines}")


def _long_files(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MAX_LINES:
            yield str(path.relative_to(ROOT)), lines


# The diagram has one row and one column per subpackage. A cell has the number of imports from its row to its column.
WIDTH, TOP, ROW, CELL, LEFT, GRID = 900, 96, 30, 34, 16, 272
DARK, PALE, BLUE = "#1f2933", "#616e7c", "#2f6f9f"


def draw(modules: Sequence[Module]) -> str:
    """The subpackages and their imports as SVG."""
    stacked = layers()
    subpackages = [subpackage for layer in stacked for subpackage in layer]
    counts = Counter(
        (module.subpackage, name.partition(".")[0])
        for module in modules
        for name in module.imports
        if name.partition(".")[0] in subpackages and module.subpackage in subpackages
    )
    height = TOP + ROW * len(subpackages) + 20
    title = "The packages from top to bottom, and the number of imports from each to the others."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="system-ui, sans-serif" role="img" aria-label="{title}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_layer_boxes(stacked),
        *(_column_head(index, subpackage) for index, subpackage in enumerate(subpackages)),
        *_grid(len(subpackages)),
        *(_row_label(index, subpackage, modules) for index, subpackage in enumerate(subpackages)),
        *_cells(subpackages, counts),
        *_legend(len(subpackages)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _layer_boxes(stacked: Sequence[Sequence[str]]) -> Iterator[str]:
    first = 0
    for layer in stacked:
        position = f'x="{LEFT}" y="{TOP + first * ROW + 2}" width="{GRID - LEFT - 10}" height="{len(layer) * ROW - 4}"'
        yield f'<rect {position} rx="6" fill="#e8f1f7" stroke="#a9c4d6"/>'
        first += len(layer)


def _column_head(index: int, subpackage: str) -> str:
    x, y = GRID + index * CELL + CELL // 2 + 4, TOP - 8
    return f'<text x="{x}" y="{y}" font-size="13" fill="{DARK}" transform="rotate(-50 {x} {y})">{subpackage}</text>'


def _grid(count: int) -> Iterator[str]:
    """The diagonal, and light lines above it."""
    right = GRID + count * CELL
    for index in range(count):
        x, y = GRID + index * CELL, TOP + index * ROW
        yield f'<path d="M{x + CELL} {TOP}V{y + ROW}M{x} {y}H{right}" stroke="#e4e7eb" fill="none"/>'
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{ROW}" fill="#e4e7eb"/>'


def _row_label(index: int, subpackage: str, modules: Sequence[Module]) -> str:
    inside = [module for module in modules if module.subpackage == subpackage]
    y = TOP + index * ROW + ROW // 2 + 5
    files = f"{len(inside)} file{'' if len(inside) == 1 else 's'}"
    size = f"{files}, {sum(module.lines for module in inside):,} lines"
    return (
        f'<text x="{LEFT + 10}" y="{y}" font-size="14" font-weight="600" fill="{DARK}">{subpackage}</text>'
        f'<text x="{GRID - 20}" y="{y}" font-size="12" fill="{PALE}" text-anchor="end">{size}</text>'
    )


def _cells(subpackages: Sequence[str], counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    strongest = max(counts[pair] for pair in counts if pair[0] != pair[1])
    for row, importer in enumerate(subpackages):
        for column, imported in enumerate(subpackages):
            count = counts.get((importer, imported), 0)
            if not count or row == column:
                continue
            x, y = GRID + column * CELL, TOP + row * ROW
            shade = 0.15 + 0.85 * log2(1 + count) / log2(1 + strongest)
            ink = "#ffffff" if shade > 0.55 else DARK
            yield (
                f'<rect x="{x + 2}" y="{y + 2}" width="{CELL - 4}" height="{ROW - 4}" rx="4" fill="{BLUE}"'
                f' fill-opacity="{shade:.2f}"/>'
                f'<text x="{x + CELL // 2}" y="{y + ROW // 2 + 4}" font-size="12" fill="{ink}"'
                f' text-anchor="middle">{count}</text>'
            )


def _legend(count: int) -> Iterator[str]:
    """The legend in the empty half below the diagonal."""
    lines = (
        "A cell has the number of imports from",
        "the package on the left to the package",
        "at the top. Each box is one layer.",
        "Nothing is below the diagonal:",
        "imports only go downward.",
    )
    for index, line in enumerate(lines):
        y = TOP + (count - len(lines) + index) * ROW * 0.75 + count * ROW * 0.25 - 12
        yield f'<text x="{GRID + 12}" y="{y:.0f}" font-size="13" fill="{PALE}">{line}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="also list the modules with one importer")
    names = parser.parse_args().names
    modules = read_modules(ROOT / "src" / PACKAGE)
    print_facts(modules, names=names)
    DIAGRAM.write_text(draw(modules), encoding="utf-8")
    print(f"wrote {DIAGRAM.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
