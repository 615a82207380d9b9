"""Subtitles of a video as text: what is said, without times, from SubRip (.srt) and WebVTT (.vtt).

Cues keep their order and their lines. Removed are times, numbers and names of cues, blocks of WebVTT that are not cues,
and the marks of formatting: `<i>`, `{\\an8}`. Character references (`&amp;`) become characters.

Reference:
    W3C (2019). WebVTT: The Web Video Text Tracks Format. https://www.w3.org/TR/webvtt1/
"""

from __future__ import annotations

import re
from html import unescape
from typing import TypeGuard

from multimodal_eval.core.errors import MediaError, shorten
from multimodal_eval.media.content import media_bytes
from multimodal_eval.media.policy import MediaPolicy

__all__ = ["RULES", "is_subtitle_file", "spoken_text", "subtitles_of_file"]

RULES = "1"  # the version of the rules above, for a signature
_SUFFIXES = (".srt", ".vtt")
_LONGEST_NAME = 4_096  # characters
_TIME = r"(?:[0-9]+:)?[0-9]{1,2}:[0-9]{2}[.,][0-9]{1,3}"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?")
_EMPTY = re.compile(r"\s*(?:WEBVTT\b.*)?\s*")
_FORMAT = re.compile(r"</?[A-Za-z][^<>\n]*>|<[0-9:.]+>|\{\\[^{}\n]*\}")


def is_subtitle_file(source: object) -> TypeGuard[str]:
    """Whether a value names a file with subtitles, and is not their text."""
    if not isinstance(source, str) or len(source) > _LONGEST_NAME or "\n" in source:
        return False
    return source.rstrip().lower().endswith(_SUFFIXES)


def subtitles_of_file(source: str, policy: MediaPolicy) -> str:
    """The text of a file with subtitles. Raises `MediaError` if it cannot be read, or has text but no times."""
    content = media_bytes(source, policy, MediaError, "file with subtitles") or b""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        advice = "Convert the file, for example with iconv"
        raise MediaError(f"the subtitles {shorten(source)} are neither UTF-8 nor UTF-16. {advice}") from None
    if not _EMPTY.fullmatch(text) and not any(map(_TIMING.fullmatch, text.splitlines())):
        raise MediaError(f"{shorten(source)} has no subtitles: no line such as 00:00:01,000 --> 00:00:02,500")
    return spoken_text(text)


def spoken_text(text: str) -> str:
    """The text of subtitles with times; any other text as it is.

    >>> from multimodal_eval.media.subtitles import spoken_text
    >>> lines = ["1", "00:00:01,000 --> 00:00:02,500", "<i>Good morning.</i>"]
    >>> spoken_text(chr(10).join(lines))
    'Good morning.'
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [place for place, line in enumerate(lines) if _TIMING.fullmatch(line)]
    if not starts:
        return "" if _EMPTY.fullmatch(text) else text
    cues = (_cue(lines[start + 1 : end]) for start, end in zip(starts, [*starts[1:], None], strict=True))
    return "\n".join(cue for cue in cues if cue)


def _cue(lines: list[str]) -> str:
    """The lines below a time, up to the blank line."""
    end = next((place for place, line in enumerate(lines) if not line.strip()), len(lines))
    plain = (unescape(_FORMAT.sub("", line)).strip() for line in lines[:end])
    return "\n".join(line for line in plain if line)
