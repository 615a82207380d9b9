"""The transcripts in docs/clarity.md are real. `python -m tests.docs.test_clarity_guide` updates them."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from tests.contests.clarity.make_data import FOLDER
from tests.docs.transcripts import commands, run, with_new_output

GUIDE = Path(__file__).parents[2] / "docs" / "clarity.md"


def prepare(folder: Path, guide: str) -> None:
    for file in FOLDER.iterdir():
        shutil.copy(file, folder)
    table = re.search(r"```csv\n(.*?)```", guide, re.DOTALL)
    assert table
    (folder / "submission.csv").write_text(table[1])


def test_the_transcripts_are_real(tmp_path):
    guide = GUIDE.read_text(encoding="utf-8")
    prepare(tmp_path, guide)
    transcripts = [(command, printed) for command, printed in commands(guide) if printed is not None]
    assert len(transcripts) == 2
    for command, printed in transcripts:
        assert run(command, tmp_path) == printed


def test_the_other_commands_run(tmp_path):
    guide = GUIDE.read_text(encoding="utf-8")
    prepare(tmp_path, guide)
    run("clarity test.csv alba.csv --task evasion --group interview -o runs/alba", tmp_path)
    block = re.search(r"((?:    mmeval [^\n]*\n)+)\n`--allow-partial`", guide)
    assert block
    for line in block[1].splitlines():
        assert not re.search("^error:", run(line.removeprefix("    mmeval "), tmp_path), re.MULTILINE)


def test_the_python_of_the_guide_runs():
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    exec(code[1], {})


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        prepare(Path(scratch), text)
        GUIDE.write_text(with_new_output(text, Path(scratch)), encoding="utf-8")
