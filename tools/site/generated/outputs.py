"""Generated pages are executed like the others. Outputs of commands are not stored: the build fills them in."""

from __future__ import annotations

from tools.site.blocks import RUN, parse
from tools.site.execute import Outcome, execute

MOST, SHOWN = 40, 30  # an output of more lines is cut to its first ones


def has_examples(text: str) -> bool:
    """Whether a page has blocks that are executed, or that should be."""
    return any(block.kind in (*RUN, "unknown") for block in parse(text).blocks)


def executed(name: str, text: str) -> Outcome:
    """Execute a generated page. An output that was empty is not stale; one in a docstring can be."""
    outcome = execute(text, name)
    outputs = [block.output for block in parse(text).blocks if block.output is not None]
    filled = tuple(f"{name}:{output.line}: " for output in outputs if not output.text)
    outcome.stale = [fault for fault in outcome.stale if not fault.startswith(filled)]
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
