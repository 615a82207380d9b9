"""Files with the baselines of BERTScore."""

from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.evaluation.metrics.bertscore import baseline_of, baselines_label


def test_a_layer_is_read_and_rescales(tmp_path):
    path = tmp_path / "b.tsv"
    path.write_text("LAYER,P,R,F\n0,0.1,0.2,0.3\n4,0.5,0.25,0\n")
    assert baseline_of(str(path), 4).rescaled((0.5, 0.25, 0.5)) == (0, 0, 0.5)
    path.write_text("LAYER\tP\tR\tF\r\n4\t0.5\t0.5\t0.5\r\n")
    assert baseline_of(str(path), 4).rescaled((1, 0.75, 0)) == (1, 0.5, -1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must start with the line LAYER,P,R,F"),
        (b"0,0.1,0.2,0.3\n", "must start with the line LAYER,P,R,F"),
        (b"LAYER,P,R,F\n", "has no line after its header"),
        (
            b"LAYER,P,R,F\n4,0.1,0.2\n",
            r":2: a layer and three numbers below 1 are expected\. Got '4,0\.1,0\.2' instead",
        ),
        (b"LAYER,P,R,F\n4,0.1,0.2,x\n", "three numbers below 1"),
        (b"LAYER,P,R,F\n4,0.1,0.2,1\n", "three numbers below 1"),
        (b"LAYER,P,R,F\n4,0.1,0.2,nan\n", "three numbers below 1"),
        (b"LAYER,P,R,F\n-1,0.1,0.2,0.3\n", "three numbers below 1"),
        (b"LAYER,P,R,F\ninf,0.1,0.2,0.3\n", "three numbers below 1"),
        (b"LAYER,P,R,F\n4,0.1,0.2,0.3\n\n4,0.1,0.2,0.3\n", ":4: layer 4 is there twice"),
        (b"LAYER,P,R,F\n3,0.1,0.2,0.3\n5,0.1,0.2,0.3\n", r"has no line for layer 4\. Its layers: 3, 5"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b" " * 1_000_001, "another kind of file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, content, message):
    path = tmp_path / "b.tsv"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        baseline_of(str(path), 4)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        baseline_of(str(tmp_path / "none"), 4)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        baseline_of(str(tmp_path), 4)
    assert baselines_label(str(tmp_path / "none")) == "none"
