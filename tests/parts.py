"""Runs with small parts: the only file that knows where their size is set."""

from __future__ import annotations

from typing import Any

import pytest

from multimodal_eval.run import plan


def set_part_size(patch: pytest.MonkeyPatch, size: int | None = None, *, with_model: int | None = None) -> None:
    """Runs have parts of `size` samples, or of `with_model` if a model scores or answers them."""
    sizes: dict[str, Any] = {"PART_SIZE": size, "PART_SIZE_WITH_MODEL": with_model}
    for name, number in sizes.items():
        if number is not None:
            patch.setattr(plan, name, number)
