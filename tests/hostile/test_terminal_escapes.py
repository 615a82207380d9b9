"""No control character of a file reaches the terminal, whatever command prints it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.visible import protected_streams, unprotected, visible
from multimodal_eval.data.runs.run import Run
from tests.hostile.foreign import Printed, edited, mmeval, put, received, texts

# Clear the screen, set the title, write to the clipboard, a link, C1 CSI, bell, backspace, return, DEL, reordering.
PAYLOAD = (
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x1b\\\x1b]8;;http://evil.example\x1b\\x\x1b]8;;\x1b\\\x9b31m\x07\x08\r\x7f"
    "\u202e[bold]no[/bold][link=http://evil.example]l[/link]\u2066\x00\x85"
)
STORED = PAYLOAD.replace("\0", "")  # samples with a NUL are refused
CONTROLS = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e"}
KEPT = {
    "format",
    "state",
    "status",
    "direction",
    "method",
    "kinds",
    "means",
    "path",
    "image_root",
    "data",
    "code",
    "headline",
    "manifest",
    "sha256",
}


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Two runs whose texts are full of escape sequences, and files with the same."""
    rows = [
        Sample(
            f"{number}{STORED}",
            references=[f"a dog {number} {STORED}"],
            generated_answer=STORED if number % 2 else f"a dog {STORED}",
            error=STORED if number == 3 else None,
            metadata={"human": number, "place": f"{STORED}{number % 2}", STORED: STORED},
        )
        for number in range(12)
    ]
    for name in ("a", "b"):
        evaluate(rows, metrics=["rouge_l", "cider"], by=["place"], output=tmp_path / "runs" / name)
        for file in ("run.json", "results.json", "lint.json"):
            edited(tmp_path / "runs" / name, _poison, file)
    for name, change in (("c", _rename), ("d", _misplace)):
        run = received(tmp_path / "runs" / "a", tmp_path / "runs" / name)
        edited(run, change, "results.json")
        edited(run, change)
    (tmp_path / "bad.jsonl").write_text(json.dumps({"id": PAYLOAD, "references": PAYLOAD, PAYLOAD: 1}) + "\n")
    lines = [json.dumps({"id": row.id, "references": row.references, "generated_answer": STORED}) for row in rows]
    (tmp_path / "good.jsonl").write_text("\n".join(lines))
    labels = [
        {"id": row.id, "label": number % 2, "annotator": f"{name}{PAYLOAD}", "comment": PAYLOAD, "run": run}
        for number, row in enumerate(rows)
        for name in ("ann", "bob")
        for run in ("a", "b")
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    labels = [{**label, "label": PAYLOAD, "run": PAYLOAD, "metric": PAYLOAD} for label in labels]
    (tmp_path / "evil-labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    (tmp_path / "config.yaml").write_text("metrics: [rouge_l, bleu]\n")
    return tmp_path


def _poison(content: object) -> None:
    """Append the payload to every text that the format leaves free."""
    for place in list(texts(content)):
        if not KEPT.intersection(place) and place[0] not in ("config", "source"):
            value = content
            for key in place:
                value = value[key]  # type: ignore[index]
            put(content, place, f"{value}{PAYLOAD}")
    if isinstance(content, dict) and isinstance(content.get("metrics"), list):  # names without a signature are refused
        content["metrics"] = [str(name).removesuffix(PAYLOAD) for name in content["metrics"]]


def _rename(content: Any) -> None:
    """Put the payload into names: of the task, and of a metric and its slices."""
    content["task"] = f"task{PAYLOAD}"
    content["headline"] = f"{content['headline']}{PAYLOAD}"
    if isinstance(content["metrics"], dict):
        content["metrics"] = {f"{name}{PAYLOAD}": entry for name, entry in content["metrics"].items()}
        content["slices"] = {f"{column}{PAYLOAD}": values for column, values in content["slices"].items()}
    else:
        content["metrics"] = [f"{name}{PAYLOAD}" for name in content["metrics"]]
        content["signatures"] = {f"{name}{PAYLOAD}": entry for name, entry in content["signatures"].items()}


def _misplace(content: Any) -> None:
    """Put a text where a number must be, below a key with the payload."""
    content["bounds" if "bounds" in content else "slices"] = {PAYLOAD: PAYLOAD}


COMMANDS = (
    ("lint", "OUT/runs/a"),
    ("lint", "OUT/runs/a", "--format", "json"),
    ("ls", "runs", "OUT/runs"),
    ("compare", "OUT/runs/a", "OUT/runs/b", "--allow-partial", "--rounds", "100"),
    ("compare", "OUT/runs/a", "OUT/runs/b", "--allow-partial", "--rounds", "100", "--format", "json"),
    ("compare", "OUT/runs/a", f"OUT/no{STORED}"),
    ("report", "OUT/runs/a", "OUT/runs/b", "-o", "OUT/page.html"),
    ("rescore", "OUT/runs/a", "--config", "OUT/config.yaml", "-o", "OUT/new"),
    ("rescore", "OUT/runs/a", "--config", "OUT/config.yaml", "-o", "OUT/new", "--format", "json"),
    ("score", "--resume", "OUT/runs/a"),
    ("score", "OUT/good.jsonl", "--metrics", "rouge_l", "-o", "OUT/scored"),
    ("score", "OUT/bad.jsonl", "--metrics", "rouge_l", "-o", "OUT/scored"),
    ("validate", "OUT/bad.jsonl"),
    ("validate", "OUT/good.jsonl"),
    ("meta", "OUT/runs/a", "--human", "human"),
    ("meta", "OUT/runs/a", "--human", "place"),
    ("compare", "OUT/runs/a", "OUT/runs/b", "--vary-weights"),
    ("agree", "OUT/good.jsonl", "--annotators", STORED),
    ("agree", "OUT/good.jsonl"),
    ("view", "OUT/runs", "--port", "0", "--label", "OUT/labels.jsonl", "--metrics", STORED),
    ("view", "OUT/runs", "--port", "0", "--label", "OUT/labels.jsonl", "--scale", STORED),
    ("view", "OUT/runs", "--port", "0", "--label", "OUT/labels.jsonl", "--label-run", STORED),
    *(
        command
        for file in ("OUT/labels.jsonl", "OUT/evil-labels.jsonl")
        for command in (
            ("agree", file, "--resamples", "20"),
            ("judge", "calibrate", "OUT/runs/a", "--human", file, "--metrics", "rouge_l"),
            ("judge", "calibrate", "OUT/runs/a", "OUT/runs/b", "--human", file, "--metrics", "rouge_l"),
            ("meta", "OUT/runs/a", "--human", file, "--metrics", "rouge_l"),
            ("judge", "plan", "OUT/runs/a", "--human", file, "--metrics", "rouge_l", "--labels", "1"),
            ("view", "OUT/runs", "--port", "0", "--label", "OUT/none.jsonl", "--scale", "1-5", "--plan", file),
        )
    ),
    *(
        command
        for run in ("OUT/runs/c", "OUT/runs/d")
        for command in (
            ("lint", run),
            ("compare", "OUT/runs/a", run, "--allow-partial", "--rounds", "100"),
            ("report", run, "-o", "OUT/page.html"),
            ("rescore", run, "--config", "OUT/config.yaml", "-o", "OUT/new"),
            ("score", "--resume", run),
            ("meta", run, "--human", "human"),
        )
    ),
)


def controls_in(printed: Printed) -> set[str]:
    return CONTROLS & set(printed.text) - {"\n", "\t"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command[0]}-{len(command)}")
def test_no_control_character_is_printed(evil, command):
    printed = mmeval(*(word.replace("OUT", str(evil)) for word in command))
    assert printed.text
    assert controls_in(printed) == set()
    if "json" in command:
        json.loads(printed.out)


def test_the_text_of_a_run_has_no_control_characters(evil):
    text = repr(Run(evil / "runs" / "c"))
    assert "\\u001b" in text
    assert not CONTROLS & set(text) - {"\n"}


def test_markup_is_printed_as_text(evil):
    printed = mmeval("lint", evil / "runs" / "a")
    assert "[bold]no[/bold]" in printed.text.replace("\n", "")


def test_on_a_terminal_only_our_own_sequences_are_written(evil):
    """With a real terminal, where tables are coloured and progress is redrawn."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "lint", str(evil / "runs" / "a")]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        pieces = []
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the end of a terminal whose process has ended
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(leader)
    assert process.returncode == 0
    text = b"".join(pieces).decode()
    assert "\x1b[" in text  # ours: colours
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\x08", "\x7f", "\u202e"):
        assert sequence not in text


def test_a_bug_keeps_its_traceback_without_control_characters(capfd, tmp_path):
    code = (
        "import sys; sys.argv = ['mmeval', 'ls', 'tasks']\n"
        "from multimodal_eval.cli import main\n"
        f"def broken(*a, **k): raise ZeroDivisionError({PAYLOAD!r})\n"
        "main.cli.main = broken\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode != 0
    assert b"ZeroDivisionError" in done.stderr
    assert not CONTROLS & set(done.stderr.decode()) - {"\n", "\t"}


@given(st.text())
def test_visible_text_has_no_control_characters_and_is_json(text):
    shown = visible(text)
    assert not CONTROLS & set(shown) - {"\n", "\t"}
    encoded = json.dumps(text, ensure_ascii=False)
    assert json.loads(visible(encoded)) == text


def test_streams_are_protected_once_and_restored(capsys):
    before = sys.stdout
    with protected_streams():
        first = sys.stdout
        with protected_streams():
            assert sys.stdout is first
            print("a\x1b[2Jb")
        assert unprotected(sys.stdout) is before
        sys.stdout.writelines(["c\x07", "\td\n"])
        assert not hasattr(sys.stdout, "buffer")
        with pytest.raises(TypeError, match="must be str"):
            sys.stdout.write(b"")  # type: ignore[arg-type]
    assert sys.stdout is before
    assert capsys.readouterr().out == "a\\u001b[2Jb\nc\\u0007\td\n"
