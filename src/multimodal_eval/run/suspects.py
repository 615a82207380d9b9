"""The search for samples that crash the process which scores them."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Suspect"]


@dataclass(frozen=True)
class Suspect:
    """A range of samples of a part that may crash a metric."""

    part: int
    metric: str
    start: int
    stop: int

    @property
    def is_single(self) -> bool:
        """Whether the range has one sample."""
        return self.stop - self.start == 1

    @property
    def halves(self) -> list[Suspect]:
        """The two halves, or the range itself if it has one sample."""
        middle = (self.start + self.stop) // 2
        return [self] if self.is_single else [replace(self, stop=middle), replace(self, start=middle)]
