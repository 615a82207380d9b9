"""The signature: every setting that changes a score, short enough to print next to it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Signature(msgspec.Struct, frozen=True):
    """A metric, its version and its settings in display order.

    Two scores may be compared only if their signatures are equal.

    >>> from multimodal_eval import Signature
    >>> str(Signature("cider_d", "1", {"tok": "ptb", "df": "coco-val2014"}))
    'cider_d|v:1|tok:ptb|df:coco-val2014'
    """

    metric: str
    version: str
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        shown = {"v": self.version, **self.settings}
        return "|".join([self.metric, *(f"{key}:{_brief(value)}" for key, value in shown.items())])

    def to_dict(self) -> dict[str, object]:
        """The signature as a JSON object."""
        named = {"metric": self.metric, "version": self.version}
        return {**named, **self.settings, **named}

    def extended(self, **settings: object) -> Signature:
        """The signature with further settings appended."""
        return Signature(self.metric, self.version, {**self.settings, **settings})


def _brief(value: object) -> str:
    if isinstance(value, Mapping):
        return "+".join(f"{_brief(weight)}*{part}" for part, weight in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
