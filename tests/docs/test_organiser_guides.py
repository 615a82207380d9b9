"""docs/organise-*.md: the files shown are written, and all commands run, with the output that is pasted.

`python -m tests.docs.test_organiser_guides` updates the output.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tests.docs.transcripts import assert_outputs_are_pasted, commands, with_new_output, write_files

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = {"organise-clarity.md": 2, "organise-dialogue.md": 2}  # with the number of outputs


@pytest.mark.parametrize("name", GUIDES)
def test_the_guide_leads_to_a_ranked_table(tmp_path, name):
    guide = (DOCS / name).read_text(encoding="utf-8")
    write_files(tmp_path, guide)
    pasted = [printed for _, printed in commands(guide) if printed is not None]
    assert len(pasted) == GUIDES[name]
    assert_outputs_are_pasted(guide, tmp_path, "python -m tests.docs.test_organiser_guides")
    places = re.findall(r"^│ (\d) +│ (\w+)", pasted[-1].partition("Places are by score")[0], re.MULTILINE)
    assert places[:2] == [("1", "alba"), ("2", "boreas")]
    assert "refused caecias" in pasted[-1]


if __name__ == "__main__":
    for name in GUIDES:
        text = (DOCS / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            write_files(Path(scratch), text)
            (DOCS / name).write_text(with_new_output(text, Path(scratch)), encoding="utf-8")
