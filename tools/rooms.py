"""Facts about the source tree, and the picture of who imports whom: python -m tools.rooms [--names]

Prints the size of src and tests, the modules that only one other module imports and the count of untyped
dictionaries; `--names` lists the modules too. Writes docs/images/rooms.svg, which CONTRIBUTING.md shows.
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
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
LONGEST_FILE = 400  # lines
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the package: its name without the package's, its size, and the modules that it imports."""

    name: str
    lines: int
    functions: tuple[int, ...]  # lines of each
    untyped: int
    imports: frozenset[str]

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]


def read_modules(package: Path) -> list[Module]:
    """Every module of the package, in the order of their names."""
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
    """Modules of the package, wherever in a file they are imported; those of the package itself are not counted."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
            base = node.module.removeprefix(PACKAGE).lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield inner if inner in files else base


def importers(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Which modules import each."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in module.imports:
            found[name].append(module.name)
    return found


def layers() -> list[list[str]]:
    """The rooms from top to bottom as pyproject.toml lists them; rooms of one layer do not import one another."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    listed = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in listed]


def print_facts(modules: Sequence[Module], *, names: bool) -> None:
    """Sizes, and what there should be less of."""
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
        print(f"files over {LONGEST_FILE} lines in {folder:<10} {len(long):>5,}")
        for lines, path in reversed(long):
            print(f"    {path} {lines}")


def _long_files(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST_FILE:
            yield str(path.relative_to(ROOT)), lines


# The picture: a row per room, a column per room, and in a cell how many imports lead from the row to the column.
WIDTH, TOP, ROW, CELL, LEFT, GRID = 900, 96, 30, 34, 16, 272
DARK, PALE, BLUE = "#1f2933", "#616e7c", "#2f6f9f"


def draw(modules: Sequence[Module]) -> str:
    """The rooms and their imports as SVG."""
    stacked = layers()
    rooms = [room for layer in stacked for room in layer]
    counts = Counter(
        (module.room, name.partition(".")[0])
        for module in modules
        for name in module.imports
        if name.partition(".")[0] in rooms and module.room in rooms
    )
    height = TOP + ROW * len(rooms) + 20
    title = "Rooms of the package from top to bottom, and how many imports lead from each to the others."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="system-ui, sans-serif" role="img" aria-label="{title}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_layer_boxes(stacked),
        *(_column_head(place, room) for place, room in enumerate(rooms)),
        *_grid(len(rooms)),
        *(_row_label(place, room, modules) for place, room in enumerate(rooms)),
        *_cells(rooms, counts),
        *_legend(len(rooms)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _layer_boxes(stacked: Sequence[Sequence[str]]) -> Iterator[str]:
    first = 0
    for layer in stacked:
        place = f'x="{LEFT}" y="{TOP + first * ROW + 2}" width="{GRID - LEFT - 10}" height="{len(layer) * ROW - 4}"'
        yield f'<rect {place} rx="6" fill="#e8f1f7" stroke="#a9c4d6"/>'
        first += len(layer)


def _column_head(place: int, room: str) -> str:
    x, y = GRID + place * CELL + CELL // 2 + 4, TOP - 8
    return f'<text x="{x}" y="{y}" font-size="13" fill="{DARK}" transform="rotate(-50 {x} {y})">{room}</text>'


def _grid(rooms: int) -> Iterator[str]:
    """The diagonal, and light lines in the half above it."""
    right = GRID + rooms * CELL
    for place in range(rooms):
        x, y = GRID + place * CELL, TOP + place * ROW
        yield f'<path d="M{x + CELL} {TOP}V{y + ROW}M{x} {y}H{right}" stroke="#e4e7eb" fill="none"/>'
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{ROW}" fill="#e4e7eb"/>'


def _row_label(place: int, room: str, modules: Sequence[Module]) -> str:
    inside = [module for module in modules if module.room == room]
    y = TOP + place * ROW + ROW // 2 + 5
    files = f"{len(inside)} file{'' if len(inside) == 1 else 's'}"
    size = f"{files}, {sum(module.lines for module in inside):,} lines"
    return (
        f'<text x="{LEFT + 10}" y="{y}" font-size="14" font-weight="600" fill="{DARK}">{room}</text>'
        f'<text x="{GRID - 20}" y="{y}" font-size="12" fill="{PALE}" text-anchor="end">{size}</text>'
    )


def _cells(rooms: Sequence[str], counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    strongest = max(counts[pair] for pair in counts if pair[0] != pair[1])
    for row, importer in enumerate(rooms):
        for column, imported in enumerate(rooms):
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


def _legend(rooms: int) -> Iterator[str]:
    """In the empty half, below the diagonal."""
    lines = (
        "A number: imports from modules of the",
        "room on the left to modules of the room",
        "above. Rooms in one box are one layer.",
        "Nothing is below the diagonal:",
        "imports go downward only.",
    )
    for place, line in enumerate(lines):
        y = TOP + (rooms - len(lines) + place) * ROW * 0.75 + rooms * ROW * 0.25 - 12
        yield f'<text x="{GRID + 12}" y="{y:.0f}" font-size="13" fill="{PALE}">{line}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="also list the modules with one importer")
    names = parser.parse_args().names
    modules = read_modules(ROOT / "src" / PACKAGE)
    print_facts(modules, names=names)
    PICTURE.write_text(draw(modules), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
