"""A taxonomy: the labels of a classification task, their aliases and their codes."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.yaml_text import read_yaml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

NO_LABEL = -1
Labels = Sequence[str] | Mapping[str, Any] | str | Path


def folded(text: str) -> str:
    """The form in which labels are compared: NFC, case-folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class Encoded(msgspec.Struct, frozen=True):
    """Labels as codes, and the counts of labels outside the taxonomy, as they were written."""

    codes: Codes
    unknown: Counter[str]


class _Numbers(dict[Any, int]):
    """Numbers the distinct cells in the order of first use: a million cells have few distinct values."""

    def __missing__(self, cell: Any) -> int:
        number = self[cell] = len(self)
        return number


@dataclass(frozen=True)
class Taxonomy:
    """Labels in the order of their codes. `aliases` are other names for them; `normalise`, if given, replaces both.

    A label matches exactly, or else ignoring case and white space.
    """

    labels: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    normalise: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        _check_labels(self.labels)
        for alias, label in self.aliases.items():
            if label not in self.labels:
                from difflib import get_close_matches

                near = get_close_matches(label, self.labels, n=1)
                guess = f" Did you mean {near[0]!r}?" if near else ""
                raise ConfigError(
                    f"the alias {alias!r} refers to {label!r}, which is not a label of the taxonomy.{guess}"
                )
        exact = {unicodedata.normalize("NFC", label): code for code, label in enumerate(self.labels)}
        names = [*self.aliases, *self.labels]
        by_form: dict[str, set[int]] = {}
        for name in names:
            by_form.setdefault(folded(name), set()).add(self.labels.index(self.aliases.get(name, name)))
        clashes = [alias for alias in self.aliases if len(by_form[folded(alias)]) > 1]
        if clashes:
            raise ConfigError(f"the alias {clashes[0]!r} refers to two labels")
        # Labels that differ only in case must match exactly.
        forms = {form: codes.pop() for form, codes in by_form.items() if len(codes) == 1}
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_forms", forms)

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, cell: Any) -> int:
        """The code of a label as a file or a model wrote it; -1 if it is not in the taxonomy."""
        if self.normalise is not None:
            return self._exact.get(self.normalise(cell), NO_LABEL)  # type: ignore[attr-defined, no-any-return]
        text = label_text(cell)
        exact = self._exact.get(text)  # type: ignore[attr-defined]
        return self._forms.get(folded(text), NO_LABEL) if exact is None else exact  # type: ignore[attr-defined, no-any-return]

    def encode(self, cells: Iterable[Any]) -> Encoded:
        """The codes of many labels. Blank cells have no label; labels outside the taxonomy are counted."""
        import numpy as np

        numbers = _Numbers()
        cells = cells if isinstance(cells, list | tuple) else list(cells)
        try:
            which = np.fromiter(map(numbers.__getitem__, cells), dtype=np.int64, count=len(cells))
        except TypeError:  # a list is not hashable
            unhashable = next(cell for cell in cells if getattr(cell, "__hash__", None) is None)
            raise InputError([Problem(code="TYPE", message=_must_be_text(unhashable))]) from None
        codes = np.array([self.code(cell) for cell in numbers], dtype=np.int64)
        unknown: Counter[str] = Counter()
        for cell, code, count in zip(numbers, codes, np.bincount(which, minlength=len(numbers)), strict=True):
            if code == NO_LABEL and label_text(cell).strip():
                unknown[label_text(cell).strip()] += int(count)
        return Encoded(codes[which], unknown)

    def encode_rows(self, rows: Sequence[Sequence[Any]]) -> Encoded:
        """The codes of one list of labels per row, as a table; shorter lists are padded with -1."""
        import numpy as np

        if not {str, type(None), float}.isdisjoint(map(type, rows)):
            number, row = next((at, row) for at, row in enumerate(rows, 1) if isinstance(row, str | None | float))
            message = f"every row must be a list of labels. Got {shorten(row)} instead."
            raise InputError([Problem(code="TYPE", message=message, line=number)])
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = self.encode(list(chain.from_iterable(rows)))
        width = int(lengths.max()) if len(rows) else 0
        if (lengths == width).all():
            return Encoded(flat.codes.reshape(len(rows), width), flat.unknown)
        table = np.full((len(rows), width), NO_LABEL, dtype=np.int64)
        table[np.arange(width) < lengths[:, None]] = flat.codes
        return Encoded(table, flat.unknown)

    def nearest(self, cell: Any) -> str | None:
        """The label closest to a misspelt one."""
        from difflib import get_close_matches

        forms = {folded(name): self.aliases.get(name, name) for name in [*self.aliases, *self.labels]}
        near = get_close_matches(folded(label_text(cell)), list(forms), n=1, cutoff=0.5)
        return forms[near[0]] if near else None

    def to_builtins(self) -> dict[str, Any]:
        """The content of a YAML file of this taxonomy."""
        return {"labels": list(self.labels), **({"aliases": dict(self.aliases)} if self.aliases else {})}

    @property
    def fingerprint(self) -> str:
        """The number of labels and a digest of labels, order and aliases, for signatures."""
        content = json.dumps(self.to_builtins(), ensure_ascii=False, sort_keys=True)
        return f"{len(self.labels)}@{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def label_text(cell: Any) -> str:
    """A label as text: integers are labels too, None and NaN are blank, anything else is refused."""
    if isinstance(cell, str):
        return unicodedata.normalize("NFC", cell)
    if is_missing(cell):
        return ""
    if isinstance(cell, Integral) and not isinstance(cell, bool):
        return str(cell)
    raise InputError([Problem(code="TYPE", message=_must_be_text(cell))])


def _must_be_text(cell: Any) -> str:
    return f"a label must be text. Got {shorten(cell)} instead."


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN or pandas.NA."""
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ == "NAType"


def load_taxonomy(source: Labels) -> Taxonomy:
    """A taxonomy from a list of labels, `{labels: […], aliases: {alias: label}}`, or a YAML file with either."""
    if isinstance(source, str | Path):
        return _converted(read_yaml(Path(source), "the labels file"), str(source))
    return _converted(source, "the labels")


def _converted(content: Any, source: str) -> Taxonomy:
    aliases: Any = {}
    if isinstance(content, Mapping):
        unknown = [key for key in content if key not in ("labels", "aliases")]
        if unknown:
            raise ConfigError(f"{source}: a taxonomy has `labels` and `aliases`. Got {unknown[0]!r} instead.")
        content, aliases = content.get("labels"), content.get("aliases") or {}
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise ConfigError(f"{source}: the labels must be a list. Got {shorten(content)} instead.")
    if not isinstance(aliases, Mapping):
        raise ConfigError(f"{source}: the aliases must be an object alias -> label. Got {shorten(aliases)} instead.")
    try:
        labels = tuple(_name(label) for label in content)
        return Taxonomy(labels, {_name(alias): _name(label) for alias, label in aliases.items()})
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _name(cell: Any) -> str:
    """A label from a YAML file, in which an unquoted `1` is a number and an unquoted `no` is false."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    if not isinstance(cell, str):
        raise ConfigError(f"a label must be text. Got {shorten(cell)} instead: put it in quotes.")
    return unicodedata.normalize("NFC", cell.strip())


def _check_labels(labels: Sequence[str]) -> None:
    if not labels:
        raise ConfigError("a taxonomy must have at least one label. Got none.")
    for label, count in Counter(labels).items():
        if not label.strip():
            raise ConfigError("a taxonomy has a blank label")
        if count > 1:
            raise ConfigError(f"the taxonomy names the label {label!r} twice")
