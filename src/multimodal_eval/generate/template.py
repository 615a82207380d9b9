"""A prompt template: compiled once, rendered for every sample."""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ConfigError, described, shorten
from multimodal_eval.core.sample import ANSWER_ALIASES, FIELDS, Sample

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = [
    "FENCED",
    "SUBTITLES",
    "EmptyFieldError",
    "PromptCostError",
    "PromptError",
    "PromptTemplate",
    "Slot",
    "letters",
    "with_slots",
]


# Places for media in a rendered text.

FENCED = "fenced"  # the kind of a place for a text that no filter may change
_NONCE = secrets.randbits(64)  # so that no text of a sample looks like a place for media
_MARK = re.compile(f"\ue000{_NONCE}:([a-z]+):([0-9]+)\ue000")


class EmptyFieldError(Exception):
    """A field of the sample that is empty, where the template writes it."""


@dataclass(frozen=True)
class Slot:
    """A place in a rendered text: `{{ image }}`. `numbers` are those of the sample's media, or texts, of that kind."""

    kind: str
    numbers: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers)

    def __str__(self) -> str:
        return "".join(f"\ue000{_NONCE}:{self.kind}:{number}\ue000" for number in self.numbers)


def with_slots(text: str) -> list[str | Slot]:
    """A rendered text, split at its media."""
    pieces = _MARK.split(text)  # text, kind, number, text, kind, number, …, text
    parts: list[str | Slot] = [pieces[0]]
    for kind, number, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        parts += [Slot(kind, (int(number),)), after]
    return parts


LONGEST_TEMPLATE = 100_000  # characters
LARGEST_FILE = 4 * LONGEST_TEMPLATE  # bytes of a file with a template, or with a system prompt
_MEDIA = ("image", "images", "audio", "video")
_TEXTS = ("id", "task", "group", "question", "prompt")
SUBTITLES = "subtitles"  # the key of the metadata: a file, or the text
GIVEN = (*_TEXTS, "choices", "metadata", SUBTITLES, *_MEDIA)
# Fields that hold or judge the answer. A model must not see them.
WITHHELD = frozenset((*FIELDS, *ANSWER_ALIASES, "reference_texts")) - {*GIVEN, "epoch", "messages"}


class PromptError(ConfigError):
    """A template that is not valid, or that cannot be rendered for a sample."""


class PromptCostError(PromptError):
    """A template that needs too many steps, too much text or too much time for a sample. Do not try the next one."""


class PromptTemplate:
    """A template with a name for messages. Raises PromptError if it is not valid, or if it names an answer."""

    def __init__(self, text: str, name: str) -> None:
        from multimodal_eval.generate.template_language import PromptLanguage

        self.text, self.name = text, name
        self._language = PromptLanguage()
        self._template = self._compiled()

    @property
    def digest(self) -> str:
        """The first characters of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def _compiled(self) -> Template:
        from jinja2 import TemplateSyntaxError
        from jinja2.meta import find_undeclared_variables

        if len(self.text) > LONGEST_TEMPLATE:
            raise PromptError(f"the template {self.name} has more than {LONGEST_TEMPLATE:,} characters")
        try:
            named = find_undeclared_variables(self._language.parse(self.text))
            template = self._language.from_string(self.text)
        except TemplateSyntaxError as fault:
            raise PromptError(f"the template {self.name}, line {fault.lineno}: {fault.message}") from None
        except Exception as fault:  # noqa: BLE001 - constants are evaluated, and deep nesting exhausts the compiler
            reason = f"it cannot be compiled ({described(fault)})"
            raise PromptError(f"the template {self.name}: {reason}") from None
        self.refuse_names(named)
        return template

    def refuse_names(self, named: set[str]) -> None:
        """Raise PromptError if the template names something that it must not see."""
        for name in sorted(named & WITHHELD):
            raise PromptError(
                f"the template {self.name} names `{name}`, which a model must not see before it answers. "
                "Solved examples belong in the file that `shots` names"
            )
        if "messages" in named:
            raise PromptError(f"the template {self.name} names `messages`. Without a template, they are the request")

    def render(self, sample: Sample) -> list[str | Slot]:
        """The text for a sample, split at the places of its media. Raises PromptError."""
        return self.rendered(fields_of(sample))

    def rendered(self, fields: dict[str, Any]) -> list[str | Slot]:
        """The text for some fields, split at its places. Raises PromptError."""
        from multimodal_eval.generate.template_language import TooLongError

        try:
            return with_slots(self._language.written(self._template, fields))
        except TooLongError as fault:
            raise PromptCostError(self._explained(fault, fields)) from None
        except Exception as fault:  # noqa: BLE001 - operations on values of a sample raise anything
            raise PromptError(self._explained(fault, fields)) from None

    def _explained(self, fault: Exception, fields: Mapping[str, Any]) -> str:
        from jinja2 import UndefinedError

        text = str(fault) or type(fault).__name__
        if isinstance(fault, UndefinedError | EmptyFieldError):
            known = ", ".join(sorted(name for name, value in fields.items() if value))
            text = f"{text}. The sample has: {known}"
        line, lines = self._line(), self.text.split("\n")
        source = lines[min(line, len(lines)) - 1].strip()
        return f"the template {self.name}, line {line} ({shorten(source)}): {text}"

    def _line(self) -> int:
        """The line of the template in the traceback of the current exception."""
        trace, line = sys.exc_info()[2], 1
        while trace is not None:
            if (
                trace.tb_frame.f_globals.get("__jinja_template__") is self._template
                or trace.tb_frame.f_code is self._template.root_render_func.__code__
            ):
                line = self._template.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        return line


def fields_of(sample: Sample) -> dict[str, Any]:
    """What a template sees of a sample. Keys of the metadata are variables too, unless a field has their name."""
    fields: dict[str, Any] = {key: value for key, value in sample.metadata.items() if key not in FIELDS}
    fields |= {
        "id": sample.id,
        "task": sample.task,
        "group": sample.group,
        "question": sample.question,
        "prompt": sample.prompt,
        "choices": letters(sample) or None,
        "metadata": sample.metadata,
        SUBTITLES: sample.metadata.get(SUBTITLES),
    }
    images = (sample.image is not None) + len(sample.images or ())
    fields["image"] = Slot("image", tuple(range(images)))
    fields["images"] = [Slot("image", (number,)) for number in range(images)]
    fields["audio"] = Slot("audio", () if sample.audio is None else (0,))
    fields["video"] = Slot("video", () if sample.video is None else (0,))
    return fields


def letters(sample: Sample) -> dict[str, str]:
    """Letter -> text of the choices. A list of choices gets the letters A, B, C, …, Z, AA, AB, …"""
    choices = sample.choices or {}
    return choices if isinstance(choices, dict) else {_letter(place): text for place, text in enumerate(choices)}


def _letter(place: int) -> str:
    name = ""
    while place >= 0:
        place, letter = divmod(place, 26)
        name, place = chr(ord("A") + letter) + name, place - 1
    return name
