"""Faults that are not the participant's."""

from __future__ import annotations

from pathlib import Path

import pytest

from multimodal_eval.contests.shared_task import judging
from multimodal_eval.core.errors import UnavailableError


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (UnavailableError("meteor needs its data. Fetch them with `mmeval fetch meteor-1.5-en`"), True),
        (ImportError("No module named 'scipy'"), True),
        (ValueError("the reference 'a zebra' is odd"), False),
    ],
)
def test_only_messages_about_the_machine_are_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, shown: bool
) -> None:
    def judge(*_: object) -> None:
        raise error

    monkeypatch.setattr(judging, "judge", judge)
    with judging.judged_or_refused(tmp_path, tmp_path, tmp_path) as refused:
        text = "\n".join(judging.lines_of(refused))
    assert "This is not a mistake in the submission" in text
    assert f"stopped with {type(error).__name__} at test_outcome.py:" in text
    assert (str(error) in text) == shown
