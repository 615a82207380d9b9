"""The turns of a request before its media are read: from a template, or from the messages of a sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.protocol import MediaKind, Role
from multimodal_eval.generate.template import PromptError, PromptTemplate, Slot

__all__ = ["Draft", "Reference", "drafts_of_messages", "media_of", "templated"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_KINDS: tuple[MediaKind, ...] = ("image", "audio", "video")


_IMAGE = re.compile(r"<image ([1-9][0-9]?)>")


@dataclass(frozen=True, slots=True)
class Reference:
    """An image, audio or video of a sample, and its source."""

    kind: MediaKind
    source: Any
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn whose media have not been read."""

    role: Role
    parts: tuple[str | Reference, ...]


def templated(template: PromptTemplate, sample: Sample) -> Draft:
    """The turn of the user. An image takes the place of `<image 1>` in the text; other media come before the text.

    Media that the template places are in its places.
    """
    media = media_of(sample)
    placed: set[tuple[str, int]] = set()
    parts: list[str | Reference] = []
    pieces = template.render(sample)
    for place, piece in enumerate(pieces):
        if isinstance(piece, Slot):
            placed |= {(piece.kind, number) for number in piece.numbers}
            parts += [media[cast(MediaKind, piece.kind)][number] for number in piece.numbers]
        elif text := _trimmed(piece, is_first=place == 0, is_last=place == len(pieces) - 1):
            parts.append(text)
    if not any(isinstance(part, str) for part in parts) and not media["audio"]:  # audio may be a spoken question
        raise PromptError(
            f"the template {template.name} gives no text: the sample has no question and no prompt. "
            "Name another template with --prompt, such as caption"
        )
    parts = list(_with_images(parts, media["image"], placed))
    rest = [item for kind in _KINDS for number, item in enumerate(media[kind]) if (kind, number) not in placed]
    return Draft("user", (*rest, *parts))


def _with_images(
    parts: Iterable[str | Reference], images: Sequence[Reference], placed: set[tuple[str, int]]
) -> Iterator[str | Reference]:
    """The parts with the images that their text names, as MMMU does: each at the first place of its number."""
    for part in parts:
        if not isinstance(part, str):
            yield part
            continue
        start = 0
        for token in _IMAGE.finditer(part):
            place = int(token[1]) - 1
            if place >= len(images) or ("image", place) in placed:
                continue
            placed.add(("image", place))
            if text := part[start : token.start()].strip("\n"):
                yield text
            yield images[place]
            start = token.end()
        if text := part[start:].strip("\n") if start else part:
            yield text


def _trimmed(text: str, *, is_first: bool, is_last: bool) -> str:
    """A piece of text without the blanks at the ends of the turn and without line ends beside media."""
    text = text.lstrip() if is_first else text.lstrip("\n")
    text = text.rstrip() if is_last else text.rstrip("\n")
    return text if text.strip() else ""


def media_of(sample: Sample) -> dict[MediaKind, list[Reference]]:
    """The media of a sample by kind."""
    images = ([] if sample.image is None else [sample.image]) + list(sample.images or ())
    return {
        "image": [Reference("image", source) for source in images],
        "audio": [] if sample.audio is None else [Reference("audio", sample.audio)],
        "video": [] if sample.video is None else [Reference("video", sample.video)],
    }


def drafts_of_messages(sample: Sample, *, with_answer: bool = False) -> list[Draft]:
    """The messages of a sample as turns, up to the last one of the user.

    An assistant's message at the end is the reference. It is left out, unless `with_answer`. A part without content
    takes the next item of the sample's media of its kind. Media of a kind that no message has come before the text of
    the first message of the user.
    """
    messages = list(sample.messages or ())
    while messages and messages[-1].role == "assistant" and not with_answer:
        messages.pop()
    roles = [message.role for message in messages]
    if "user" not in roles or (roles[-1] != "user" and not with_answer):
        raise PromptError("the messages have none of the user that a model could answer")
    media = media_of(sample)
    items = {kind: iter(references) for kind, references in media.items()}
    drafts = [Draft(_role(message), tuple(_parts(message, items))) for message in messages]
    named = {part.kind for draft in drafts for part in draft.parts if isinstance(part, Reference)}
    rest = [item for kind in _KINDS if kind not in named for item in media[kind]]
    if rest:
        first = next(place for place, draft in enumerate(drafts) if draft.role == "user")
        drafts[first] = Draft("user", (*rest, *drafts[first].parts))
    for draft in drafts:
        if not draft.parts:
            raise PromptError(f"a message of the role {draft.role!r} is empty")
    return drafts


def _role(message: Message) -> Role:
    try:
        return _ROLES[message.role]
    except KeyError:
        raise PromptError(
            f"the messages have the role {shorten(message.role)}, which is not sent to a model. "
            f"Known: {', '.join(_ROLES)}"
        ) from None


def _parts(message: Message, items: dict[MediaKind, Iterator[Reference]]) -> Iterator[str | Reference]:
    for part in message.parts:
        if part.type == "text":
            if text := str(part.content or ""):
                yield text
        elif part.type in _KINDS:
            yield _filled(part, part.type, items)
        else:
            raise PromptError(f"a message has a part of the type {shorten(part.type)}, which is not sent to a model")


def _filled(part: MessagePart, kind: MediaKind, items: dict[MediaKind, Iterator[Reference]]) -> Reference:
    detail = part.extra.get("detail")
    source = part.content
    if source is None:
        item = next(items[kind], None)
        if item is None:
            raise PromptError(f"the messages have more places for {kind} than the sample has media of that kind")
        source = item.source
    return Reference(kind, source, detail if isinstance(detail, str) else None)
