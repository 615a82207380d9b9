"""The text of a decoder's exception, without bytes of the file."""

from __future__ import annotations

import re

# Decoders quote what they cannot read: "broken PNG file (chunk b'root')".
_QUOTED = re.compile(r"""(?<!\w)(?:b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")""")


def fault_text(error: Exception) -> str:
    """The kind of the exception and its message; what the message quotes is left out.

    A message about a media file must not show its content: the file may be one that the reader of a report, or the
    sender of a run, must not see.
    """
    return f"{type(error).__name__}: {_QUOTED.sub('…', str(error))}"
