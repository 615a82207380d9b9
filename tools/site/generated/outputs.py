"""Generated pages are executed like the others. Their outputs are not stored, so none can be stale."""

from __future__ import annotations

from tools.site.blocks import parse
from tools.site.execute import Outcome, execute

MOST, SHOWN = 40, 30  # an output of more lines is cut to its first ones


def executed(name: str, text: str) -> Outcome:
    """Execute a generated page."""
    outcome = execute(text, name)
    outcome.stale.clear()
    return outcome


def readable(text: str) -> str:
    """A page without empty outputs, and with the first lines of long ones."""
    lines = text.split("\n")
    for block in reversed(parse(text).blocks):
        if block.output is None:
            continue
        start, end = block.output.start, block.output.end
        if start == end:
            del lines[start - 1 : end + 1]
        elif end - start > MOST:
            lines.insert(end + 1, f'\n<p class="cut">… and {end - start - SHOWN} more lines.</p>')
            del lines[start + SHOWN : end]
    return "\n".join(lines)
