"""Execute the notebooks of docs/notebooks, each in a fresh folder: python -m tools.notebooks update|check [NAME …]

`update` writes the outputs into the notebooks, without times, paths and ids. `check` fails if an output differs from
the committed one; numbers may differ in the last digits, as another processor rounds differently, and the time that
requests took is not compared. `page` is the text of a notebook for the documentation site.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import zip_longest
from math import isclose
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NEED_WEIGHTS = ("endpoint",)  # notebooks that need fetched models
TIMEOUT = 600  # seconds of a cell

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EMBEDDED = re.compile(r"data:[\w/+-]+;base64,[A-Za-z0-9+/=]+")
_SPEED = re.compile(r"[\w. ]+, [\d,.]+ requests per second")  # "6 s, 2.0 requests per second"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_PROGRESS = re.compile(r"\r\x1b\[K[^\r\n]*")  # a line that is drawn again

Notebook = Any  # nbformat's own objects have no types


def notebooks(names: Sequence[str] = ()) -> list[Path]:
    """The files with these names, or all of them."""
    known = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no notebook is named {unknown[0]!r}. Known: {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def read(path: Path) -> Notebook:
    """The notebook in a file."""
    return nbformat.read(path, as_version=4)


def executed(path: Path) -> Notebook:
    """The notebook with the outputs of its cells, which run in a new folder."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COLUMNS": "100", "IPYTHONDIR": f"{folder}/.ipython"}
        client = NotebookClient(
            notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute(env=environment)
    return stable(notebook)


def stable(notebook: Notebook) -> Notebook:
    """The notebook without anything that differs between two executions."""
    notebook.metadata = nbformat.from_dict(_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for number, cell in enumerate(notebook.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = [output for output in map(_stable_output, _joined(cell.outputs)) if output is not None]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return notebook


def _joined(outputs: Sequence[Any]) -> list[Any]:
    """The outputs, with consecutive pieces of the same stream as one."""
    joined: list[Any] = []
    for output in outputs:
        if output.output_type == "stream" and joined and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _stable_output(output: Any) -> Any | None:
    """The output without metadata and addresses in memory; None if nothing remains."""
    if output.output_type == "stream":
        output.text = _PROGRESS.sub("", output.text)
        return output if output.text.strip() else None
    if output.output_type in ("execute_result", "display_data"):
        output.metadata = nbformat.from_dict({})
        plain = output.data.get("text/plain")
        if plain is not None:
            output.data["text/plain"] = _ADDRESS.sub("", plain)
    return output


def write(notebook: Notebook, path: Path) -> None:
    """Write the notebook, with a line per line of its texts."""
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")


def difference(old: Notebook, new: Notebook) -> str:
    """The lines in which two notebooks differ; empty if only last digits do."""
    before, after = _outputs(old), _outputs(new)
    if len(before) == len(after) and all(map(_same, before, after)):
        return ""
    return "\n".join(unified_diff(before, after, "committed", "executed", lineterm="", n=1))


def _outputs(notebook: Notebook) -> list[str]:
    """All sources and outputs as lines."""
    lines: list[str] = []
    for cell in notebook.cells:
        lines += [f"[{cell.cell_type} {cell.id}]", *cell.source.splitlines()]
        for output in cell.get("outputs", ()):
            texts = output.data if "data" in output else {output.output_type: output.get("text", "")}
            for kind, text in sorted(texts.items()):
                text = _SPEED.sub("a time", _EMBEDDED.sub("data:", str(text)))
                lines += [f"[{kind}]", *text.replace(">", ">\n").splitlines()]
    return lines


def _same(old: str, new: str) -> bool:
    """Equal, or numbers that differ by a rounding."""
    if old == new:
        return True
    if _NUMBER.sub("#", old) != _NUMBER.sub("#", new):
        return False
    pairs = zip_longest(_NUMBER.findall(old), _NUMBER.findall(new), fillvalue="nan")
    return all(isclose(float(a), float(b), rel_tol=2e-3, abs_tol=2e-4) for a, b in pairs)


def page(path: Path) -> str:
    """The notebook as a MyST page: its texts, code and outputs. Nothing is executed."""
    parts = [part for cell in read(path).cells for part in _of_cell(cell)]
    return "\n\n".join(parts) + "\n"


def _of_cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield _fenced("python", cell.source)
    for output in cell.outputs:
        if output.output_type == "stream":
            yield _fenced("text", output.text.rstrip("\n"))
            continue
        data = output.data
        if "text/html" in data:
            yield _fenced("{raw} html", f'<div class="notebook-output">{data["text/html"]}</div>')
        elif "image/svg+xml" in data:
            yield _fenced("{raw} html", data["image/svg+xml"])
        elif "image/png" in data:
            source = f"data:image/png;base64,{data['image/png'].strip()}"
            yield _fenced("{raw} html", f'<img alt="output of the cell above" src="{source}">')
        else:
            yield _fenced("text", data.get("text/plain", ""))


def _fenced(language: str, text: str) -> str:
    """A block whose fence is longer than any in its text."""
    longest = max((len(fence) for fence in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["update", "check"])
    parser.add_argument("names", nargs="*", help="notebooks without .ipynb; by default all")
    options = parser.parse_args(arguments)
    failed = False
    for path in notebooks(options.names):
        notebook = executed(path)
        if options.action == "update":
            write(notebook, path)
            print(f"{path.name}: written")
        elif lines := difference(read(path), notebook):
            failed = True
            print(f"{path.name} differs; run: python -m tools.notebooks update {path.stem}\n{lines}")
        else:
            print(f"{path.name}: same outputs")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
