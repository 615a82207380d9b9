"""`mmeval run`: a model answers, the answers are scored, and failures are shown with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.cli.model_options import generation_settings
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.cli.command_line import mmeval
from tests.generate.counting_model import CountingModel, offered

ROWS = [("a", "say red", "red"), ("b", "say blue", "green"), ("c", "say cut", "cut"), ("d", "say reject", "x")]
PRICES = 'currency: EUR\n"counting:*": {input: 1000, output: 10000}\n'  # 100 * 0.001 + 10 * 0.01 = 0.2 per answer


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(PRICES)
    return write(ROWS)


def write(rows, name="data.jsonl"):
    lines = [json.dumps({"id": id_, "question": question, "references": [answer]}) for id_, question, answer in rows]
    with open(name, "w") as stream:  # noqa: PTH123
        stream.write("\n".join(lines))
    return name


@pytest.fixture
def model():
    with offered(CountingModel()) as model:
        yield model


def run(*arguments, code=0):
    return mmeval("run", *arguments, "--metrics", "exact_match", "--no-report", "--no-cache", code=code)


def test_answers_are_generated_and_scored(data, model):
    done = run(data, "--model", "counting:x", "-o", "run")
    scored = load_run("run")
    # `cut` is cut off and `reject` is rejected: neither is an answer.
    assert scored["exact_match"]["value"] == 1 / 2
    assert scored["exact_match"]["n_scored"] == 2
    assert [sample.generated_answer for sample in scored.samples()] == ["red", "blue", None, None]
    assert scored.info.generation.statuses == {"ok": 2, "rejected": 1, "truncated": 1}
    assert model.calls == ["a", "b", "c", "d"]
    assert "answers of counting: 2 ok, 1 rejected, 1 truncated" in done.stdout
    assert "  rejected (1): HTTP 400: the prompt is too long" in done.stdout
    assert "  truncated (1): the answer was cut off after 10 tokens at the limit of tokens" in done.stdout
    assert "tokens: 300 in, 30 out" in done.stdout
    assert "cost" not in done.stdout


def test_a_truncated_answer_can_be_accepted(data, model):
    run(data, "--model", "counting:x", "--accept-truncated", "-o", "run")
    assert load_run("run")["exact_match"]["value"] == pytest.approx(2 / 3)


def test_options_become_settings(data, model):
    run(
        *(data, "--model", "counting:x", "-o", "run", "--base-url", "http://localhost:1/v1", "--system", "Short."),
        *("--temperature", "0", "--top-p", "0.5", "--max-tokens", "7", "--model-seed", "3", "--stop", "\n"),
        *("--reasoning-effort", "low", "--logprobs", "--extra", "top_k=20", "--extra", 'user="me"'),
        *("--max-pixels", "1000", "--detail", "low", "--concurrency", "5", "--timeout", "9", "--retries", "1"),
        *("--no-probe", "--revision", "abc"),
    )
    folder = RunFolder("run").read_info().config.generation
    assert (folder.base_url, folder.system, folder.revision) == ("http://localhost:1/v1", "Short.", "abc")
    assert (folder.max_pixels, folder.detail, folder.concurrency) == (1000, "low", 5)
    assert (folder.timeout, folder.retries, folder.use_cache, folder.use_probe) == (9, 1, False, False)
    assert json.loads(RunFolder("run").storage.read_bytes("run.json"))["config"]["generation"]["parameters"] == {
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 7,
        "seed": 3,
        "stop": ["\n"],
        "reasoning_effort": "low",
        "logprobs": True,
        "extra": {"top_k": 20, "user": "me"},
    }


def test_a_system_prompt_in_a_file(data, model, tmp_path):
    (tmp_path / "system.txt").write_text("Answer briefly.")
    run(data, "--model", "counting:x", "--system", "@system.txt", "-o", "run")
    assert RunFolder("run").read_info().config.generation.system == "Answer briefly."


def test_a_system_prompt_in_a_file_that_is_missing(data, model):
    done = run(data, "--model", "counting:x", "--system", "@none.txt", "-o", "run", code=1)
    assert "the system prompt 'none.txt' is not a file.\n" in done.stderr


def test_options_are_laid_on_the_configuration_file(data, model, tmp_path):
    (tmp_path / "run.yaml").write_text(
        "generation: {model: 'counting:y', concurrency: 3, parameters: {temperature: 1, max_tokens: 5}}"
    )
    run(data, "--config", "run.yaml", "--temperature", "0", "--timeout", "8", "-o", "run")
    config = RunFolder("run").read_info().config.generation
    assert (config.model, config.concurrency, config.timeout) == ("counting:y", 3, 8)
    assert (config.parameters.temperature, config.parameters.max_tokens) == (0, 5)


def test_the_model_may_be_named_on_the_command_line_only(data, model, tmp_path):
    (tmp_path / "run.yaml").write_text("generation: {concurrency: 3, parameters: {max_tokens: 5}}")
    run(data, "--config", "run.yaml", "--model", "counting:z", "-o", "run")
    config = RunFolder("run").read_info().config.generation
    assert (config.model, config.concurrency, config.parameters.max_tokens) == ("counting:z", 3, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("generation: {model: 'a:b', concurency: 3}", "no setting is named 'concurency'. Did you mean 'concurrency'?"),
        (
            "generation: {model: 'a:b', parameters: {temprature: 3}}",
            "no setting is named 'temprature'. Did you mean 'temperature'?",
        ),
        ("generation: {concurrency: 3}", "`generation` needs the key `model`"),
        ("generation: {model: 'a:b', detail: large}", "`generation.detail` must be 'low' or 'high' or 'auto'"),
    ],
)
def test_a_wrong_section_is_explained(data, tmp_path, content, message):
    (tmp_path / "run.yaml").write_text(content)
    done = run(data, "--config", "run.yaml", code=1)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give DATA, or --resume DIR"),
        (("data.jsonl",), "name a model: --model PROVIDER:NAME"),
        (("data.jsonl", "--model", "echo:", "--extra", "a"), "'a' must be written NAME=VALUE"),
        (("data.jsonl", "--model", "echo:", "--extra", "a=b"), "'b' is not JSON. Quote text twice"),
        (("data.jsonl", "--model", "echo:", "--until", "x"), "must be written METRIC ± WIDTH"),
        (("data.jsonl", "--model", "echo:", "--until", "x ± 0"), "The width must be above 0"),
        (("data.jsonl", "--model", "echo:", "--accept-open"), "--accept-open needs --resume"),
        (("--resume", "run", "--model", "echo:"), "does not accept --model"),
        (("--resume", "run", "--temperature", "0"), "does not accept --temperature"),
        (("data.jsonl", "--resume", "run"), "--resume takes no DATA"),
    ],
)
def test_wrong_use_is_refused(data, arguments, message):
    assert message in run(*arguments, code=2).stderr


def test_an_unknown_provider_is_refused_before_anything_is_read(data):
    done = run("none.jsonl", "--model", "opnai:x", code=1)
    assert "no provider is named 'opnai'. Did you mean 'openai'?" in run(data, "--model", "opnai:x", code=1).stderr
    assert done.returncode == 1


def test_what_a_metric_needs_is_checked_before_anything_is_asked(data, model):
    with open("bare.jsonl", "w") as stream:  # noqa: PTH123
        stream.write('{"id": "a", "question": "say red"}')
    done = run("bare.jsonl", "--model", "counting:x", "-o", "run", code=1)
    assert "no sample has `references`" in done.stderr
    assert model.calls == []
    assert not RunFolder("run").storage.exists("run.json")


def test_a_fatal_failure_keeps_the_answers_and_says_how_to_continue(data, model):
    path = write([("a", "say red", "red"), ("b", "say down", "down")])
    done = run(path, "--model", "counting:x", "-o", "run", "--concurrency", "1", code=1)
    assert "the key is not valid: set $OPENAI_API_KEY" in done.stderr
    assert "Continue with: mmeval run --resume run" in done.stderr
    assert RunFolder("run").read_info().state == "generating"


def test_an_endpoint_that_refuses_everything_leaves_no_folder(data, model):
    path = write([("a", "say down", "red"), ("b", "say down", "down")])
    done = run(path, "--model", "counting:x", "-o", "run", code=1)
    assert done.stderr.endswith("error: the key is not valid: set $OPENAI_API_KEY\n")
    assert not RunFolder("run").storage.exists("run.json")


def test_a_run_continues_where_it_stopped(data, model):
    path = write([("a", "say red", "red"), ("b", "say down", "down"), ("c", "say blue", "blue")])
    run(path, "--model", "counting:x", "-o", "run", "--concurrency", "1", code=1)
    assert "a" in model.calls
    with offered(CountingModel(is_up=True)) as second:
        mmeval("run", "--resume", "run", "--no-report", "--concurrency", "2")
    assert "a" not in second.calls
    assert [sample.generated_answer for sample in load_run("run").samples()] == ["red", "down", "blue"]
    assert load_run("run").info.config.generation.concurrency == 2


def test_an_interrupted_run_names_the_command_that_continues_it(data, model):
    path = write([("a", "say red", "red"), ("b", "say interrupt", "x")])
    done = run(path, "--model", "counting:x", "-o", "run", "--concurrency", "1", code=130)
    assert "interrupted. Continue with: mmeval run --resume run" in done.stderr


def test_a_budget_stops_the_run_before_it_is_exceeded(data, model):
    path = write([(str(number), "say red", "red") for number in range(20)])
    budgeted = ("--prices", "prices.yaml", "--max-tokens", "10", "--concurrency", "4")
    done = run(path, "--model", "counting:x", "-o", "run", *budgeted, "--budget", "2", code=1)
    # An answer costs 0.2. The first requests may cost 2 * 7 * 0.001 + 10 * 0.01 = 0.114; then 100 / 7 tokens per
    # estimated token are known, so that a request may cost 1.25 * 100 * 0.001 + 0.1 = 0.225: 8 answers are within 2.
    assert "the budget of 2.00 EUR does not allow another request" in done.stderr
    assert "Continue with a larger one: mmeval run --resume run --budget AMOUNT" in done.stderr
    asked = len(model.calls)
    assert asked * 0.2 <= 2
    assert asked >= 8

    done = mmeval("run", "--resume", "run", "--budget", "1", "--no-report", code=1)
    assert f"{asked * 0.2:.2f} EUR are spent" in done.stderr  # from the journal
    assert len(model.calls) == asked

    done = mmeval("run", "--resume", "run", "--budget", "100", "--no-report")
    assert sorted(model.calls, key=int) == [str(number) for number in range(20)]  # each was asked once
    assert "cost: 4.00 EUR" in done.stdout
    generation = load_run("run").info.generation
    assert (generation.cost, generation.currency) == (pytest.approx(4), "EUR")


def test_a_finished_run_has_nothing_to_change(data, model):
    run(data, "--model", "counting:x", "-o", "run")
    assert mmeval("run", "--resume", "run", "--no-report").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "1"), "a budget needs prices"),
        (("--budget", "1", "--prices", "prices.yaml"), "a budget needs a limit of tokens per answer"),
        (("--budget", "1", "--prices", "none.yaml"), "the price file none.yaml cannot be read"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(data, model, arguments, message):
    assert message in run(data, "--model", "counting:x", *arguments, code=1).stderr
    assert model.calls == []


def test_a_dry_run_sends_nothing(data, model, tmp_path):
    done = run(data, "--model", "counting:x", "--dry-run", "--max-tokens", "10", "--prices", "prices.yaml")
    assert model.calls == []
    assert {path.name for path in tmp_path.iterdir()} == {"data.jsonl", "prices.yaml"}
    # `say red` has 7 bytes: 2 tokens, and 4 of the turn; `say blue` 8: 2; `say cut` 7: 2; `say reject` 10: 3.
    # 25 * 0.001 = 0.025 for the input, 40 * 0.01 = 0.4 for the output.
    assert done.stdout == (
        "model          counting:x\n"
        "requests       4\n"
        "to be sent     32 bytes of text and media\n"
        "input tokens   about 25\n"
        "output tokens  at most 40\n"
        "cost           at most about 0.43 EUR: 0.025 EUR for the input\n"
        "Estimated by 4 bytes of text per token, one token per 28 x 28 pixels of an image.\n"
        "Nothing was sent.\n"
    )


def test_a_dry_run_as_json(data, model):
    done = run(data, "--model", "counting:x", "--dry-run", "--format", "json", "--prices", "prices.yaml")
    estimate = json.loads(done.stdout)
    assert (estimate["requests"], estimate["input_tokens"], estimate["most_output_tokens"]) == (4, 25, None)
    assert (estimate["input_cost"], estimate["most_output_cost"], estimate["currency"]) == (0.025, None, "EUR")


def test_a_dry_run_reports_the_problems_of_the_input(data, model):
    with open("bad.jsonl", "w") as stream:  # noqa: PTH123
        stream.write('{"id": "a", "question": "x", "references": [1]}\n')
    assert "bad.jsonl:1" in run("bad.jsonl", "--model", "counting:x", "--dry-run", code=1).stderr


def test_a_dry_run_counts_the_answers_that_the_run_would_take_from_the_cache(data, model, tmp_path, monkeypatch):
    monkeypatch.delenv("MMEVAL_CACHE")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    command = ("run", data, "--model", "counting:x", "--metrics", "exact_match", "--no-report")
    mmeval(*command, "--accept-truncated")
    # Of four, one was rejected. One was cut off, which is an outcome, too, whether it is accepted or not.
    for options in ([], ["--accept-truncated"]):
        told = mmeval(*command, *options, "--dry-run").stdout
        assert "requests       4, 3 of them answered from the cache" in told


def test_a_dry_run_counts_epochs(data, model):
    assert "requests       12\n" in run(data, "--model", "counting:x", "--dry-run", "--epochs", "3").stdout


def test_a_dry_run_takes_no_longer_with_many_epochs(data, model):
    done = run(data, "--model", "counting:x", "--dry-run", "--epochs", "1000000000", "--max-tokens", "10")
    assert "requests       4,000,000,000\n" in done.stdout
    assert "to be sent     32.0 GB of text and media\n" in done.stdout
    assert "input tokens   about 25,000,000,000\n" in done.stdout
    assert "output tokens  at most 40,000,000,000\n" in done.stdout


def test_a_dry_run_counts_the_cached_answers_of_every_epoch(data, model, tmp_path, monkeypatch):
    monkeypatch.delenv("MMEVAL_CACHE")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    command = ("run", write(ROWS[:2]), "--model", "counting:x", "--metrics", "exact_match", "--no-report")
    mmeval(*command, "--epochs", "3")
    assert "requests       10, 6 of them answered" in mmeval(*command, "--epochs", "5", "--dry-run").stdout


@pytest.fixture
def no_models(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


def test_a_dry_run_needs_no_model_of_a_metric(data, model, no_models):
    done = mmeval("run", data, "--model", "counting:x", "--task", "vqa", "--dry-run")
    assert "requests       4\n" in done.stdout
    assert "To fetch before the run: the resources that clip_score, semantic_similarity" in done.stdout


def test_missing_models_of_metrics_stop_a_run_before_anything_is_asked(data, model, no_models):
    done = mmeval("run", data, "--model", "counting:x", "--task", "vqa", "-o", "run", code=1)
    assert "clip_score: the model 'openai/clip-vit-base-patch32' is not on this machine. Get it with: mmeval fetch" in (
        done.stderr
    )
    assert "To run without them: --metrics vqa_accuracy,exact_match" in done.stderr
    assert model.calls == []


def test_the_body_of_a_request_is_shown_as_it_is_sent(data):
    command = ("run", data, "--model", "openai:tiny", "--base-url", "http://localhost:1/v1", "--metrics", "exact_match")
    shown = mmeval(*command, "--temperature", "0", "--show-request", "b", "--format", "json").stdout
    mmeval(*command, "--temperature", "0", "--batch-out", "requests.jsonl", "-o", "run")
    with open("requests.jsonl") as stream:  # noqa: PTH123
        written = stream.read().splitlines()[1]
    body = written[written.index('"body":') :].removesuffix("}")
    assert body in shown
    assert json.loads(shown)["url"] == "http://localhost:1/v1/chat/completions"
    assert json.loads(shown)["body"]["messages"] == [{"role": "user", "content": "say blue"}]


def test_a_parameter_is_set_once(data, model):
    for options in (
        ("--temperature", "0", "--extra", "temperature=1"),
        ("--max-tokens", "9", "--extra", "max_completion_tokens=1"),
    ):
        done = run(data, "--model", "counting:x", *options, code=1)
        assert "`extra` must not set" in done.stderr
    assert model.calls == []


def test_a_request_can_be_shown(data, model):
    done = mmeval("run", data, "--model", "counting:x", "--task", "vqa", "--system", "Be kind.", "--show-request", "b")
    assert model.calls == []
    assert "[system]\n  Be kind.\n\n[user]\n  say blue\n" in done.stdout
    done = mmeval("run", data, "--model", "counting:x", "--show-request", "b", "--format", "json")
    assert json.loads(done.stdout)["turns"] == [{"role": "user", "parts": [{"text": "say blue"}]}]


def test_the_request_of_an_epoch_is_shown_by_the_id_that_it_has_in_the_run(data, model):
    options = (data, "--model", "counting:x", "--epochs", "2", "--model-seed", "5", "--show-request")
    assert "seed: 5" in mmeval("run", *options, "b").stdout
    assert "seed: 6" in mmeval("run", *options, "b#2").stdout
    assert "Known: a#1, a#2, b#1" in mmeval("run", *options, "b#3", code=1).stderr


def test_a_later_turn_of_a_dialogue_is_shown_with_the_earlier_ones(data, model):
    with open("dialogue.jsonl", "w") as stream:  # noqa: PTH123
        for name, group in (("a", "x"), ("b", "y"), ("c", "y"), ("d", "z")):
            stream.write(
                json.dumps({"id": name, "group": group, "question": f"say {name}", "references": ["x"]}) + "\n"
            )
    Path("history.yaml").write_text("generation: {history: true}")
    options = ("dialogue.jsonl", "--model", "counting:x", "--config", "history.yaml", "--show-request")
    done = mmeval("run", *options, "c")
    turns = "[user]\n  say b\n\n[assistant]\n  (the model's reply to 'b')\n\n[user]\n  say c\n"
    assert done.stdout.endswith(f"\n\n{turns}")
    assert "the digest is another one" in done.stderr
    for first, question in (("b", "say b"), ("d", "say d")):
        done = mmeval("run", *options, first)
        assert done.stdout.endswith(f"\n\n[user]\n  {question}\n")
        assert done.stderr == ""


def test_an_unknown_id_is_named(data, model):
    done = mmeval("run", data, "--model", "counting:x", "--show-request", "e", code=1)
    assert "no sample is named 'e'" in done.stderr


def test_of_many_ids_only_some_are_listed(data, model):
    write([(f"id-{number}", "say red", "red") for number in range(1000)])
    done = mmeval("run", data, "--model", "counting:x", "--show-request", "x", code=1)
    assert "Known: id-0, id-1, id-10, id-11" in done.stderr
    assert "id-20" not in done.stderr


CAPTIONS = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "annotations": [{"id": 5, "image_id": 1, "caption": "a dog"}, {"id": 6, "image_id": 2, "caption": "two cats"}],
}
QUESTIONS = {"questions": [{"image_id": 1, "question": "Is it a dog?", "question_id": 10}]}
VQA = {"annotations": [{"question_id": 10, "image_id": 1, "answers": [{"answer": "yes", "answer_id": 1}]}]}


def test_files_of_a_dataset_bring_prompt_and_metrics(data, model, tmp_path):
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS))
    (tmp_path / "v2_OpenEnded_mscoco_val2014_questions.json").write_text(json.dumps(QUESTIONS))
    (tmp_path / "v2_mscoco_val2014_annotations.json").write_text(json.dumps(VQA))
    asked = ("--model", "counting:x", "--media-as", "none", "--no-report", "--no-cache")
    for file, prompt, metrics in (
        ("captions.json", "caption", {"cider_d", "bleu"}),
        ("v2_mscoco_val2014_annotations.json", "vqa", {"vqa_accuracy", "exact_match"}),
    ):
        mmeval("run", file, *asked, "-o", prompt, "--allow-empty")
        info = RunFolder(prompt).read_info()
        assert info.config.generation.prompt == prompt
        assert metrics <= {*info.metrics}


def test_a_prompt_that_is_named_stays(data, model, tmp_path):
    (tmp_path / "captions.json").write_text(json.dumps(CAPTIONS))
    (tmp_path / "mine.md").write_text("Describe it in French.")
    done = mmeval(
        *("run", "captions.json", "--model", "counting:x", "--media-as", "none", "--prompt", "mine.md"),
        *("--show-request", "1"),
    )
    assert "Describe it in French." in done.stdout


def test_until_becomes_a_setting():
    context = cli.commands["run"].make_context("run", ["d", "--until", "vqa_accuracy +- 1e-2"])
    assert generation_settings(context.params) == {"until": {"metric": "vqa_accuracy", "width": 0.01}}
    context = cli.commands["run"].make_context("run", ["d", "--until-better", "runs/a"])
    assert generation_settings(context.params) == {"until": {"better_than": "runs/a"}}


def test_two_reasons_to_stop_exclude_each_other(data, model):
    arguments = ("--until", "exact_match ± 0.05", "--until-better", "base")
    done = mmeval("run", data, "--model", "counting:x", "--metrics", "exact_match", *arguments, code=2)
    assert "--until and --until-better exclude each other" in done.stderr
    assert "decides by the headline" in done.stderr
    assert not model.calls


def test_lists_of_models_and_prompts():
    assert "openai" in mmeval("ls", "models").stdout
    assert "yes_no" in mmeval("ls", "prompts").stdout
    assert "Answer with the option's letter" in mmeval("card", "mcq").stdout
