"""The signature of sacrebleu is beside ours: in the terminal, the report and the viewer."""

from __future__ import annotations

import json

from tests.cli.command_line import mmeval
from tests.report.viewer.viewed import client

CHRF = "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0"


def test_every_display_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(n), "references": [f"a red dog runs {n}"], "generated_answer": f"a dog {n}"} for n in range(6)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval(
        *("score", "data.jsonl", "--metrics", "chrf,rouge_1", "--option", "chrf.word_order=2", "-o", "runs/first", "-v")
    ).stdout
    assert f"  chrf|v:1|char_order:6|word_order:2|beta:2|errors:default@2\n    in its original program: {CHRF}\n" in out
    assert out.count("in its original program") == 1
    page = (tmp_path / "runs" / "first" / "report.html").read_text()
    assert page.count(CHRF) == 1  # in the provenance
    assert CHRF in client(tmp_path / "runs").get("/run/first").text
