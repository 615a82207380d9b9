"""The examples of docs/python.md are real. `python -m tests.docs.test_python_guide` shows those that differ."""

from __future__ import annotations

import doctest
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples() -> doctest.DocTest:
    """All examples as one program, with the lines of the guide."""
    inside, lines = False, []
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        inside = line == "```pycon" or (inside and line != "```")
        lines.append(line if inside and line != "```pycon" else "")
    return doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, "python.md", str(GUIDE), 0)


def test_the_examples_are_real():
    program = examples()
    assert len(program.examples) > 20
    printed: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(program, out=printed.append)
    assert results.failed == 0, "".join(printed)


if __name__ == "__main__":
    doctest.DocTestRunner(optionflags=FLAGS).run(examples())
