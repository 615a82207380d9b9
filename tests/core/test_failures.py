"""Answers that are failures of the generator: which texts count, which do not, and the versions of the patterns."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Sample, evaluate, load_run, rescore, resume
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.failures import (
    ERROR_PATTERNS,
    FIRST,
    NEWEST,
    SETS,
    answers_of,
    compiled_patterns,
    expanded,
    is_error_message,
    label,
    rows_that_start,
    with_versions,
)
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import to_batch, to_table
from tests.edited_runs import write_json
from tests.golden.load import golden

FAILURES = (
    "[ERROR] x",
    " \n[ERROR]",
    'Traceback (most recent call last):\n  File "generate.py", line 3, in <module>',
    "Error: 429 Too Many Requests",
    "error: 503",
    "API Error: 529 overloaded",
    "Error code: 404 - {'error': {'message': 'The model does not exist'}}",
    "HTTP Error 404: Not Found",
    "429 Client Error: Too Many Requests for url: https://api.example.org/v1",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "CUDA error: device-side assert triggered",
    "RuntimeError: CUDA out of memory.",
    "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    "openai.BadRequestError: Error code: 400",
    "openai.BadRequestError",
    "google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api')",
    "RateLimitError: slow down",
    "APIConnectionError('Connection error.')",
    "Failed to obtain answer via API.",
    "Failed to obtain answer via API. ",
    "Failed to obtain answer.",
    '{"error": {"message": "Rate limit reached", "type": "requests"}}',
    "{ 'error': 'timeout' }",
    '{"object":"error","message":"too long"}',
    '{"type":"error","error":{"type":"overloaded_error"}}',
    "Request timed out.",
    "Connection error.",
    "ERROR: request timed out after 30 s",
    "Error: the model is not loaded",
    "Rate limit reached for gpt-4o in organization org-1",
    "You exceeded your current quota, please check your plan and billing details.",
    "This model's maximum context length is 8192 tokens.",
    "Rate limit exceeded, retry later",
    "The server had an error while processing your request. Sorry about that!",
    "That model is currently overloaded with other requests.",
    "Your input image may contain content that is not allowed by our safety system.",
    "upstream connect error or disconnect/reset before headers. reset reason: overflow",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
)
ANSWERS = (
    *("a red dog", "An error message on a screen.", "Error 404", "Error: 404 Not Found", "404", "500", "429"),
    *(
        "Traceback on a screen",
        "CUDA is a platform",
        "ValueError: no",
        "openai",
        "google.com",
        "requests. Then he left",
    ),
    *("None", "N/A", "{}", "[]", "null", "", " ", "no [ERROR] here", "the error: 429", "Connection error on a phone"),
    *('{"errors": []}', '{"error": null}', "A rate limit reached by a car", "Server room", "Request a taxi."),
    *(
        "I am unable to see",
        "As an AI language model, I cannot",
        "Failed to open",
        "502 Bad Gateway",
        "4290 Client Error: ",
    ),
)


def both_ways(texts, patterns=ERROR_PATTERNS):
    """The rows that failed, after a check that columns and samples agree."""
    samples = [Sample(id=str(row), generated_answer=text) for row, text in enumerate(texts)]
    from_samples = answers_of(Batch.of(samples), patterns)
    assert answers_of(to_batch(to_table(samples, 0)), patterns) == from_samples
    return set(from_samples.failed)


@pytest.mark.parametrize("text", FAILURES)
def test_failures(text):
    assert both_ways([text]) == {0}


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text):
    assert both_ways([text]) == set()


def test_every_pattern_has_an_example():
    for pattern in SETS[NEWEST]:
        assert any(re.match(pattern.regex, text) for text in FAILURES), pattern


@pytest.mark.parametrize("pattern", SETS[NEWEST], ids=lambda pattern: pattern.regex[:30])
def test_a_match_starts_as_declared(pattern):
    for text in FAILURES:
        if re.match(pattern.regex, text):
            assert text.lstrip().lower().startswith(tuple(start[:8] for start in pattern.starts))


def test_captions_are_not_failures():
    captions = golden("captions.json.gz")
    texts = [*captions["candidates"].values()] if isinstance(captions["candidates"], dict) else captions["candidates"]
    texts = [*texts, *(row[0] for row in golden("ptb_fuzz.json.gz")["rows"])]
    for file in (files("multimodal_eval") / "data" / "demo").iterdir():
        if file.name.endswith(".jsonl"):
            texts += map(str, (json.loads(line).get("generated_answer", "") for line in file.read_text().splitlines()))
    hits = {texts[row] for row in both_ways(texts)}
    assert len(texts) > 10_000
    assert hits == {"[ERROR] request timed out after 30 s"}  # the demo has two


pieces = st.sampled_from(
    [text[:length] for text in FAILURES for length in (3, 7, 8, 9, 40)]
    + ["", " ", "\u00a0", "\u2003", "É", "x", "ERROR", ":", " 429", "\n"]
)


@given(st.lists(st.lists(pieces, max_size=3).map("".join), min_size=1, max_size=8))
def test_columns_and_samples_agree(texts):
    both_ways(texts)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8), st.lists(st.text(min_size=1, max_size=9), max_size=4))
def test_no_row_with_a_start_is_missed(texts, starts):
    column = to_table([Sample(id=str(row), generated_answer=text) for row, text in enumerate(texts)], 0)
    rows = set(rows_that_start(column.column("generated_answer").combine_chunks(), tuple(starts)).tolist())
    expected = {row for row, text in enumerate(texts) if not text.strip() or text.startswith(tuple(starts))}
    assert rows >= expected


@pytest.mark.parametrize("piece", ["a.", "openai.a", " ", "I'm ", "{ ", "error: ", "_"])
def test_long_answers_are_matched_in_linear_time(piece):
    assert not is_error_message(piece * (300_000 // len(piece)), compiled_patterns(ERROR_PATTERNS))


def test_names_of_sets():
    assert expanded(None) == expanded(["default"]) == expanded([NEWEST]) == ERROR_PATTERNS
    assert expanded([FIRST]) == (r"\s*\[ERROR\]",)
    assert expanded(["OOPS", "default"]) == ("OOPS", *ERROR_PATTERNS)
    assert with_versions(["default", "OOPS"]) == [NEWEST, "OOPS"]
    assert [label(patterns) for patterns in (None, [FIRST], [r"\s*\[ERROR\]"], [], ["A", "default"])] == [
        NEWEST,
        None,
        None,
        "none",
        f"A,{NEWEST}",
    ]
    with pytest.raises(ConfigError, match=r"no set of patterns is named 'default@9'. Known: default, default@1"):
        _ = RunConfig(error_patterns=["default@9"]).patterns


def data(*answers):
    return [Sample(id=str(n), references=[f"a {n}"], generated_answer=text) for n, text in enumerate(answers)]


def test_a_run_names_its_patterns_and_leaves_failures_unscored():
    run = evaluate(data("a 0", "Error: 429 Too Many Requests", "OOPS", "a 3"), metrics=["rouge_l"])
    assert run["rouge_l"]["n_scored"] == 3
    assert run["rouge_l"]["signature"].endswith(f"|errors:{NEWEST}")
    assert run["rouge_l"]["reasons"] == [
        {"reason": "the answer is a generator's error message: 'Error: 429 Too Many Requests'", "count": 1}
    ]
    assert run.info.config.error_patterns == [NEWEST]
    both = rescore(run, {"error_patterns": ["default", "OOPS"]})
    assert both["rouge_l"]["n_scored"] == 2
    assert both["rouge_l"]["signature"].endswith(f"|errors:{NEWEST},OOPS")


def test_a_run_of_an_earlier_version_keeps_its_patterns(tmp_path):
    answers = data("a 0", "Traceback (most recent call last):", "[ERROR] x", "a 3")
    run = evaluate(answers, metrics=["rouge_l"], error_patterns=[FIRST], output=tmp_path / "old")
    assert "errors" not in run["rouge_l"]["signature"]
    info = json.loads((run.path / "run.json").read_text())
    del info["config"]["error_patterns"]  # as it was stored
    write_json(run.path / "run.json", info)
    assert load_run(run.path)["rouge_l"]["n_scored"] == 3
    again = rescore(load_run(run.path), {"by": ["id"]})
    assert again["rouge_l"] == run["rouge_l"]
    write_json(run.path / "run.json", {**info, "state": "scoring", "finished": None})
    next((run.path / "scores").iterdir()).unlink()
    assert resume(run.path)["rouge_l"] == run["rouge_l"]
    assert RunFolder(run.path).read_info().config.patterns == expanded([FIRST])
    newer = rescore(load_run(run.path), {"error_patterns": ["default"]})
    assert newer["rouge_l"]["n_scored"] == 2


# Failed and blank rows: the same from columns as from samples.

SOME_ANSWERS = st.none() | st.sampled_from(
    ["", " \n", "\u2003", "a dog", "[ERROR] x", "\t[ERROR]", "no [ERROR]", "[ERR", "OR]", "[ERROR][ERROR]", "é"]
)
ROWS = st.lists(st.tuples(SOME_ANSWERS, st.sampled_from([None, None, "", "timeout"])), min_size=1, max_size=12)


@given(ROWS, st.integers(0, 12), st.sampled_from([(r"\s*\[ERROR\]",), (), ("a d", r"\s*\[ERROR\]")]))
def test_failed_and_blank_rows_of_columns_and_samples_agree(rows, start, patterns):
    samples = [Sample(id=str(row), generated_answer=answer, error=error) for row, (answer, error) in enumerate(rows)]
    start = min(start, len(samples) - 1)
    batch = to_batch(to_table(samples, 0))[start:]
    assert answers_of(batch, patterns) == answers_of(Batch.of(samples[start:]), patterns)
