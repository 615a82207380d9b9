"""Every card has a worked example, whose value is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_pages import assert_current, needs_weights
from tools.site.blocks import parse
from tools.site.pages import DOCS, name_of

CARDS = sorted((DOCS / "metrics").glob("*.md"))


@pytest.mark.parametrize("card", [card for card in CARDS if not needs_weights(card)], ids=name_of)
def test_a_card_is_executed(card):
    assert_current(card)


def test_every_card_has_a_worked_example():
    assert [name_of(card) for card in CARDS if not has_example(card)] == []


def has_example(card: Path) -> bool:
    blocks = parse(card.read_text(encoding="utf-8")).blocks
    return any(block.kind == "python" and block.output and block.output.text.strip() for block in blocks)
