"""Published figures computed again from the answers that were published with them."""

from __future__ import annotations

from multimodal_eval.run.reproduction.ledger import Cell, Counts, Reason, Reproduced, Reproduction
from multimodal_eval.run.reproduction.reproduce import reproduce

__all__ = ["Cell", "Counts", "Reason", "Reproduced", "Reproduction", "reproduce"]
