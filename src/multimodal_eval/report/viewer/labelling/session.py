"""The state of labelling in one server: the task, the file and the secrets. It makes every record that is written."""

from __future__ import annotations

import hmac
import logging
import secrets
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import numpy as np
from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.report.viewer.labelling.labels import Action, Entry, LabelRecord, StoredLabels, Unit, now
from multimodal_eval.report.viewer.labelling.queue import Item, LabelOptions, copy_known
from multimodal_eval.report.viewer.labelling.task import LabelTask, Value, label_task
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.resampling import Agreement

__all__ = [
    "TOKEN",
    "Access",
    "LabelSession",
    "Progress",
    "Summary",
    "Tokens",
    "checked_text",
    "cookie",
    "open_session",
    "posted",
    "progress_of",
    "see_other",
    "set_cookie",
    "summary_of",
]


# Forms: their fields within limits, and tokens that only this browser and this process know.

MOST_BYTES = 64 * 1024
MOST_FIELDS = 16
_TYPE = "application/x-www-form-urlencoded"
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_JOINERS = "\u200c\u200d"


async def posted(request: Request, known: frozenset[str]) -> dict[str, str]:
    """The fields of a form, each at most once and one of `known`."""
    kind = request.headers.getlist("content-type")
    if len(kind) != 1 or kind[0].partition(";")[0].strip().lower() != _TYPE:
        raise HTTPException(415, f"a form must be sent as {_TYPE}")
    body = await _body(request)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise HTTPException(400, "the form cannot be read: it must be UTF-8 text with few fields") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise HTTPException(400, "a field of the form is given twice")
    if unknown := fields.keys() - known:
        raise HTTPException(400, f"the form has an unknown field: {sorted(unknown)[0][:60]}")
    return fields


async def _body(request: Request) -> bytes:
    content = bytearray()
    try:
        async for piece in request.stream():
            content += piece
            if len(content) > MOST_BYTES:
                raise HTTPException(413, f"a form may have {MOST_BYTES:,} bytes at most. Nothing was saved")
    except ClientDisconnect:
        raise HTTPException(400, "the form was not sent completely") from None
    return bytes(content)


def checked_text(fields: Mapping[str, str], name: str, longest: int, *, lines: bool = False) -> str:
    """A text that a person typed, without characters that are invisible; `lines` allows line breaks and tabs."""
    text = unicodedata.normalize("NFC", fields.get(name, "")).replace("\r\n", "\n").strip()
    if len(text) > longest:
        raise HTTPException(400, f"`{name}` may have {longest:,} characters at most. Got {len(text):,}")
    allowed = _JOINERS + ("\n\t" if lines else "")
    for character in text:
        if character not in allowed and unicodedata.category(character) in _HIDDEN:
            raise HTTPException(400, f"`{name}` has a character that is invisible: U+{ord(character):04X}")
    return text


# Secrets of one server process: forms and items that only this process, for this browser or annotator, has made.


_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Tokens:
    """Signs with a random key that is known to this process alone, so that no form outlives it."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def form(self, session: str) -> str:
        """The token in the forms of a browser, whose cookie has `session`."""
        return self._signed("form", session)

    def is_form(self, session: str, token: str) -> bool:
        """Whether a form is one of this browser's."""
        return bool(session) and hmac.compare_digest(self.form(session).encode(), token.encode())

    def item(self, annotator: str, position: int) -> str:
        """The address of an item: its place in the order, and a signature that holds for one annotator."""
        return f"{position + 1}-{self._signed('item', annotator, str(position))[:24]}"

    def position(self, annotator: str, token: str) -> int | None:
        """The place of an item; None if the address was not made for this annotator by this process."""
        number = token.partition("-")[0]
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            return None
        position = int(number) - 1
        return position if hmac.compare_digest(self.item(annotator, position).encode(), token.encode()) else None

    def _signed(self, *parts: str) -> str:
        message = "\0".join(str(len(part)) + ":" + part for part in parts)
        return hmac.new(self._key, message.encode(), "sha256").hexdigest()


def cookie(request: Request, name: str) -> str:
    """The value of one of our cookies, or an empty text."""
    try:
        return unquote(request.cookies.get(_named(request, name), ""), errors="strict")
    except UnicodeDecodeError:
        return ""


def set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    """Keep a value in the browser: scripts cannot read it, and no other site makes the browser send it."""
    response.set_cookie(_named(request, name), quote(value, safe=""), _YEAR, path="/", httponly=True, samesite="strict")


def _named(request: Request, name: str) -> str:
    """Browsers keep cookies by host, not by port: two servers on one machine need different names."""
    return f"mmeval-{name}-{request.url.port or 80}"


# Pages with forms, and the forms that come back: each has a token that only this browser and this process know.


TOKEN = "token"
_SESSION = "session"


@dataclass(frozen=True)
class Access:
    """Renders pages with forms and reads what is posted."""

    folder: RunsFolder
    templates: Environment
    tokens: Tokens

    def page(self, request: Request, template: str, status: int = 200, **content: Any) -> Response:
        """A page whose forms have the token of this browser. It is not stored in any cache."""
        session = cookie(request, _SESSION) or secrets.token_hex(16)
        text = self.templates.get_template(template).render(
            folder=self.folder, token=self.tokens.form(session), **content
        )
        response = HTMLResponse(text, status, {"cache-control": "no-store"})
        if session != cookie(request, _SESSION):
            set_cookie(request, response, _SESSION, session)
        return response

    async def form(self, request: Request, *known: str) -> dict[str, str]:
        """The fields of a form of this browser and this process. The guard has checked its origin."""
        fields = await posted(request, frozenset((*known, TOKEN)))
        if not self.tokens.is_form(cookie(request, _SESSION), fields.pop(TOKEN, "")):
            raise HTTPException(
                403,
                "nothing was saved: the page is older than this server, or cookies are off. Reload it and try again",
            )
        return fields


def see_other(address: str) -> Response:
    """Lead the browser to another page after a form, so that reloading does not send it again."""
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


# How far the annotators are and how well they agree. Nothing is said about single runs.


_MOST_COUNTED = 20_000  # units for which agreement is computed while a page waits


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an annotator is."""

    annotator: str
    labelled: int
    skipped: int
    total: int

    @property
    def done(self) -> int:
        """Items that the annotator has seen to."""
        return self.labelled + self.skipped


@dataclass(frozen=True, slots=True)
class Summary:
    """The progress of all annotators, and their agreement if two have labelled the same item."""

    progress: list[Progress]
    doubled: int  # items with labels of two or more annotators
    alpha: Agreement | None


def progress_of(annotator: str, entries: Mapping[Unit, Entry], units: Collection[Unit]) -> Progress:
    """The progress of an annotator among the items of this task; the file may have labels of others."""
    mine = [entry for unit, entry in entries.items() if unit in units]
    skipped = sum(entry.label is None for entry in mine)
    return Progress(annotator, len(mine) - skipped, skipped, len(units))


def summary_of(task: LabelTask, units: Collection[Unit], labels: Mapping[str, Mapping[Unit, Entry]]) -> Summary:
    """The summary of a file of labels."""
    progress = [progress_of(name, entries, units) for name, entries in sorted(labels.items())]
    progress = [each for each in progress if each.done]
    doubled, alpha = _agreement(task, [labels[each.annotator] for each in progress])
    return Summary(progress, doubled, alpha)


def _agreement(task: LabelTask, by_annotator: Sequence[Mapping[Unit, Entry]]) -> tuple[int, Agreement | None]:
    rows = [
        row
        for row in (_row(item, by_annotator) for item in task.queue.items)
        if sum(cell is not None for cell in row) > 1
    ]
    if not rows:
        return 0, None
    is_numeric = task.scale.level == "interval"
    table = np.array(rows[:_MOST_COUNTED], dtype=np.float64 if is_numeric else object)
    return len(rows), krippendorff_alpha(table, task.scale.level, resamples=0)


def _row(item: Item, by_annotator: Sequence[Mapping[Unit, Entry]]) -> list[str | float | None]:
    entries = (labels.get(item.unit) for labels in by_annotator)
    return [None if entry is None else entry.label for entry in entries]


_LOGGER = logging.getLogger(__name__)
_OUTCOMES = {"left": ("win", "loss"), "tie": ("tie", "tie"), "right": ("loss", "win")}  # first answer left, right


def open_session(folder: RunsFolder, options: LabelOptions) -> LabelSession:
    """Open the file and read what is to be labelled. Raises MultimodalEvalError if an option is wrong.

    If nothing but the file was named and the runs do not suit each other, tags and notes can be written all the same.
    """
    labels = StoredLabels.at(options.file)
    task, reason = None, None
    try:
        task = label_task(folder, options)
    except MultimodalEvalError as fault:
        if options != LabelOptions(file=options.file, seed=options.seed, annotator=options.annotator):
            raise
        reason = str(fault)
    if task is not None and task.plan is not None:
        copy_known(task.plan, str(task.queue.items[0].unit[0]), labels)
    for repair in labels.file.repairs:
        _LOGGER.warning("warning: %s: %s", labels.file.path.name, repair)
    if labels.unreadable:
        _LOGGER.warning("warning: %s has %d lines that are not labels", labels.file.path.name, labels.unreadable)
    return LabelSession(labels, task, reason, options.annotator)


@dataclass(frozen=True)
class LabelSession:
    """Where labels are given."""

    labels: StoredLabels
    task: LabelTask | None
    reason: str | None  # why there is no task
    annotator: str | None  # of all labels; None: everybody gives a name
    tokens: Tokens = field(default_factory=Tokens)

    @cached_property
    def units(self) -> dict[Unit, int]:
        """The place of each item."""
        return {} if self.task is None else {item.unit: place for place, item in enumerate(self.task.queue.items)}

    def next_position(self, annotator: str) -> int | None:
        """The first item without a label, and after the last one the first skipped one; None at the end."""
        assert self.task is not None
        entries = self.labels.entries(annotator)
        for place, item in enumerate(self.task.queue.items):
            if item.unit not in entries:
                return place
        return None

    def skipped(self, annotator: str) -> int | None:
        """The first skipped item; None if there is none."""
        assert self.task is not None
        entries = self.labels.entries(annotator)
        skipped = (place for place, item in enumerate(self.task.queue.items) if _is_skipped(entries.get(item.unit)))
        return next(skipped, None)

    def last(self, annotator: str) -> tuple[int, Entry] | None:
        """The item of the annotator's last action, which `undo` takes back."""
        mine = [
            (self.units[unit], entry) for unit, entry in self.labels.entries(annotator).items() if unit in self.units
        ]
        return mine[-1] if mine else None

    def progress(self, annotator: str) -> Progress:
        """How far an annotator is."""
        return progress_of(annotator, self.labels.entries(annotator), self.units.keys())

    def summary(self) -> Summary:
        """How far all are."""
        assert self.task is not None
        return summary_of(self.task, self.units.keys(), self.labels.all())

    def label(self, item: Item, annotator: str, value: Value, comment: str) -> None:
        """Append a label, unless it is there already. Raises NotSavedError."""
        assert self.task is not None
        if self.task.is_pairwise:
            value = _OUTCOMES[str(value)][not self.task.queue.shows_first_left(item, annotator)]
        if self.labels.entries(annotator).get(item.unit) == Entry(value, comment or None, item.weight):
            return
        self.labels.add(self._record(item, annotator, value, comment, None))

    def withdraw(self, item: Item, annotator: str, action: Action, comment: str = "") -> None:
        """Append a record that the item is skipped, or that its label is taken back."""
        self.labels.add(self._record(item, annotator, None, comment, action))

    def shown_value(self, item: Item, annotator: str, entry: Entry | None) -> str | None:
        """The choice of the form that gives the label of an entry."""
        assert self.task is not None
        if entry is None or entry.label is None:
            return None
        if not self.task.is_pairwise:
            return str(entry.label)
        first_left = self.task.queue.shows_first_left(item, annotator)
        outcomes = {words[not first_left]: side for side, words in _OUTCOMES.items()}
        return outcomes.get(str(entry.label))

    def _record(
        self, item: Item, annotator: str, value: Value | None, comment: str, action: Action | None
    ) -> LabelRecord:
        assert self.task is not None
        run, baseline, metric, sample = item.unit
        left = None
        if self.task.is_pairwise:
            names = (run, baseline) if baseline is not None else ("system", "baseline")
            left = names[not self.task.queue.shows_first_left(item, annotator)]
        return LabelRecord(
            id=sample,
            label=value,
            annotator=annotator,
            metric=metric,
            run=run,
            baseline=baseline,
            left=left,
            action=action,
            comment=comment or None,
            human_weight=None if action else item.weight,
            time=now(),
        )


def _is_skipped(entry: Entry | None) -> bool:
    return entry is not None and entry.label is None
