"""Batch files of OpenAI's API, written here in the shape of its documentation and of vLLM's `run-batch`."""

from __future__ import annotations

import gzip
import json
import random

from multimodal_eval.data.logs.openai_batch import FORMAT, NO_RESULT
from multimodal_eval.data.logs.recognised import recognised
from tests.data.readers.reading import read

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def request(name, content="What is it?", **body):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    body = {"model": "m", "messages": messages, **body}
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}


def result(name, text="a cat", status=200, error=None, **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
    body = {"id": "x", "model": "m-1", "choices": [choice], "usage": usage}
    return {"id": "b", "custom_id": name, "response": {"status_code": status, "body": body}, "error": error}


def failure(name, status=429, message="rate limit"):
    body = {"error": {"message": message, "code": "x"}}
    return {"id": "b", "custom_id": name, "response": {"status_code": status, "body": body}, "error": None}


def write(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_results_alone(tmp_path):
    samples, problems, _ = read(write(tmp_path / "results.jsonl", result("b"), result("a", "a dog")))
    assert not problems.total
    assert [(sample.id, sample.generated_answer) for sample in samples] == [("b", "a cat"), ("a", "a dog")]
    expected = {"input_tokens": 9, "output_tokens": 2, "reasoning_tokens": 1, "model": "m-1", "finish_reason": "stop"}
    assert samples[0].metadata == expected


def test_questions_and_images_come_from_the_requests_in_any_order(tmp_path):
    parts = [{"type": "text", "text": "Which animal?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    names = [f"n{number}" for number in range(20)]
    write(tmp_path / "requests.jsonl", *(request(name, [*parts, {"type": "text", "text": name}]) for name in names))
    shuffled = random.Random(1).sample(names, len(names))
    path = write(tmp_path / "results.jsonl", *(result(name, f"answer to {name}") for name in shuffled))
    for named in (path, tmp_path, tmp_path / "requests.jsonl"):
        samples, problems, _ = read(named)
        assert not problems.total
        assert [sample.id for sample in samples] == shuffled
        assert {(sample.question, sample.generated_answer) for sample in samples} == {
            (f"Which animal?\n{name}", f"answer to {name}") for name in names
        }
        assert samples[0].image == PIXEL
        assert samples[0].metadata["system"] == "Be brief."


def test_what_failed_is_an_error_and_never_an_answer(tmp_path):
    write(tmp_path / "requests.jsonl", *(request(name) for name in "abcde"))
    write(tmp_path / "errors.jsonl", failure("c", 400, "too long"))
    write(
        tmp_path / "results.jsonl",
        result("a"),
        failure("b"),
        result("d", "ignored", error={"code": "expired", "message": "expired"}),
    )
    by_id = {sample.id: sample for sample in read(tmp_path)[0]}
    assert {name: sample.error for name, sample in by_id.items()} == {
        "a": None,
        "b": "status 429: rate limit",
        "c": "status 400: too long",
        "d": "expired",
        "e": NO_RESULT,
    }
    assert {name for name, sample in by_id.items() if sample.generated_answer is not None} == {"a"}
    assert by_id["e"].question == "What is it?"


def test_answers_of_two_models_to_the_same_requests_stay_apart(tmp_path):
    write(tmp_path / "requests.jsonl", request("a"))
    write(tmp_path / "alba.jsonl", result("a", "one"))
    write(tmp_path / "boreas.jsonl", result("a", "two"))
    assert [sample.generated_answer for sample in read(tmp_path / "boreas.jsonl")[0]] == ["two"]
    assert [sample.id for sample in read(tmp_path)[0]] == ["alba/a", "boreas/a"]
    _, problems, _ = read(tmp_path / "requests.jsonl")
    assert problems.kept[0].hint == "Name one: alba.jsonl, boreas.jsonl"


def test_requests_without_results_are_refused(tmp_path):
    _, problems, _ = read(write(tmp_path / "requests.jsonl", request("a")))
    assert "without their results" in problems.kept[0].message


def test_several_replies_are_epochs(tmp_path):
    line = result("a")
    choices = line["response"]["body"]["choices"]
    line["response"]["body"]["choices"] = [choices[0], {**choices[0], "index": 1}]
    samples, _, _ = read(write(tmp_path / "results.jsonl", line))
    assert [(sample.id, sample.epoch, sample.group) for sample in samples] == [("a#1", 1, "a"), ("a#2", 2, "a")]


def test_reasoning_refusals_and_log_probabilities(tmp_path):
    line = result("a", "yes", reasoning_content="hm")
    line["response"]["body"]["choices"][0]["logprobs"] = {"content": [{"token": "yes", "logprob": -0.5}]}
    refused = result("b", None, refusal="I cannot help with that.")
    filtered = result("c", None)
    filtered["response"]["body"]["choices"][0]["finish_reason"] = "content_filter"
    first, second, third = read(write(tmp_path / "results.jsonl", line, refused, filtered))[0]
    assert (first.metadata["reasoning"], first.logprobs) == ("hm", [-0.5])
    assert (second.generated_answer, second.metadata["refusal"]) == ("I cannot help with that.", True)
    assert third.error == "the reply has no text (finish_reason 'content_filter')"


def test_completions_and_responses(tmp_path):
    old = {"choices": [{"text": "one", "finish_reason": "length"}]}
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "two"}]},
    ]
    new = {"output": output, "usage": {"input_tokens": 3, "output_tokens": 4}}
    lines = [
        {"custom_id": str(number), "response": {"status_code": 200, "body": body}, "error": None}
        for number, body in enumerate((old, new))
    ]
    first, second = read(write(tmp_path / "results.jsonl", *lines))[0]
    assert (first.generated_answer, first.metadata["finish_reason"]) == ("one", "length")
    assert (second.generated_answer, second.metadata["output_tokens"]) == ("two", 4)


def test_compressed_results(tmp_path):
    write(tmp_path / "requests.jsonl", request("a"))
    path = tmp_path / "results.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(result("a")).encode() + b"\n"))
    (sample,), problems, _ = read(path)
    assert not problems.total
    assert (sample.generated_answer, sample.question) == ("a cat", "What is it?")


def test_results_are_predictions_for_data(tmp_path):
    data = write(tmp_path / "data.jsonl", {"id": "a", "references": ["a cat"]})
    results = write(tmp_path / "results.jsonl", result("a"))
    (sample,), problems, _ = read(data, results)
    assert not problems.total
    assert (sample.references, sample.generated_answer) == (["a cat"], "a cat")


def test_a_first_line_with_a_long_answer_is_recognised(tmp_path):
    path = write(tmp_path / "results.jsonl", result("a", "long " * 50_000))
    assert recognised(path) is FORMAT


def test_a_half_written_line_is_named(tmp_path):
    path = write(tmp_path / "results.jsonl", result("a"))
    path.write_text(path.read_text() + '{"custom_id": "b", "resp')
    _, problems, _ = read(path)
    assert [(problem.code, problem.line) for problem in problems.kept] == [("TRUNCATED", 2)]


def test_the_model_of_the_log(tmp_path):
    path = write(tmp_path / "results.jsonl", failure("x"), result("a"))
    assert FORMAT.info(path).model == "m-1"
    assert recognised(path) is FORMAT
