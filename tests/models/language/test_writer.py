"""Texts written with a cache of keys and values: a model with random weights, and the rules of sampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.language.writer import (
    CachedLlama,
    LlamaWriter,
    Order,
    Sampling,
    log_probability,
    next_token,
)
from multimodal_eval.models.source import find_model
from tests.models.language import tiny_llama

PROMPTS = [list(b"The capital"), list(b"a"), list(b"one two three four five"), list("привет".encode()), [256, 65]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_llama.write(folder, head_dim=16)
    return find_model(str(folder))


@pytest.fixture
def writer(model):
    return LlamaWriter(model, rows=3)


def orders(**options):
    return [Order(prompt, 12, logprobs=True, **options) for prompt in PROMPTS]


def test_each_step_equals_reading_the_whole_text_again(model):
    llama = CachedLlama(model, rows=2)
    for prompt in PROMPTS:
        text = list(prompt)
        logits = llama.read(0, text)
        for _ in range(20):
            text.append(int(logits.argmax()))
            logits = llama.step([text[-1]])[0]
            assert logits == pytest.approx(llama.read(1, text), abs=1e-4)


def test_a_row_does_not_depend_on_the_others_nor_on_the_threads(model):
    alone, together = CachedLlama(model, rows=1), CachedLlama(model, rows=5, threads=2)
    first = [together.read(row, prompt) for row, prompt in enumerate(PROMPTS)]
    steps = [together.step([65 + row + step for row in range(5)]) for step in range(4)]
    for row, prompt in enumerate(PROMPTS):
        assert alone.read(0, prompt).tobytes() == first[row].tobytes()
        for step in range(4):
            assert alone.step([65 + row + step])[0].tobytes() == steps[step][row].tobytes()


def test_a_longer_text_grows_the_cache(model):
    llama = CachedLlama(model, rows=2)
    text = [65] * 250
    logits = llama.read(0, text)
    for _ in range(10):  # beyond the first capacity of 256 tokens
        text.append(66)
        logits = llama.step([66])[0]
    assert logits == pytest.approx(llama.read(1, text), abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"sampling": Sampling(0.8, 0.9, seed=5)}])
def test_texts_are_the_same_in_any_company(model, writer, options):
    together = writer.write(orders(**options))  # three rows for five texts: they join and leave
    assert writer.busy == 0
    for order, written in zip(orders(**options), together, strict=True):
        assert LlamaWriter(model, rows=1).write([order]) == [written]


def test_the_log_probabilities_are_those_of_the_scorer(model, writer):
    from multimodal_eval.models.language.llama import CausalLlama

    scorer = CausalLlama(model)
    for prompt, written in zip(PROMPTS, writer.write(orders()), strict=True):
        (scores,) = scorer.score([[*prompt, *written.tokens]], [len(prompt)])
        assert written.logprobs == pytest.approx(scores.tolist(), abs=1e-4)


def test_the_seed_decides(writer):
    def texts(seed, temperature=1.5):
        return [written.tokens for written in writer.write(orders(sampling=Sampling(temperature, seed=seed)))]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)
    assert texts(1, temperature=0.0) == texts(2, temperature=0.0)


def test_the_limit_of_tokens(writer):
    (written,) = writer.write([Order(PROMPTS[0], 5)])
    assert (written.finish, len(written.tokens), written.logprobs) == ("length", 5, None)
    (single,) = writer.write([Order(PROMPTS[0], 1)])
    assert single.tokens == written.tokens[:1]


def test_a_stop_ends_the_text_before_it(writer):
    sampling = Sampling(1.0, seed=3)
    (whole,) = writer.write([Order(list(b"abc"), 40, sampling, logprobs=True)])
    stop = whole.text[10:12]
    place = whole.text.index(stop)
    (cut,) = writer.write([Order(list(b"abc"), 40, sampling, stop=["\0never\0", stop], logprobs=True)])
    assert (cut.text, cut.finish) == (whole.text[:place], "stop")
    assert cut.logprobs == whole.logprobs[: len(cut.logprobs)]
    assert len(writer.tokenizer.decode(list(cut.tokens[: len(cut.logprobs)]))) >= place


def test_an_end_token_ends_the_text(model, tmp_path):
    (written,) = LlamaWriter(model, rows=1).write([Order(PROMPTS[2], 12, logprobs=True)])
    tokens = written.tokens
    end = next(token for token in tokens[3:] if token < 128)  # an ASCII letter
    tiny_llama.write(tmp_path / "ends", head_dim=16, eos_token_id=[7, end])
    (ended,) = LlamaWriter(find_model(str(tmp_path / "ends")), rows=1).write([Order(PROMPTS[2], 12, logprobs=True)])
    place = tokens.index(end)
    assert (ended.tokens, ended.finish) == (tokens[: place + 1], "stop")
    assert ended.logprobs == written.logprobs[:place]


def test_a_dropped_text_leaves_the_others_as_they_are(model, writer):
    first, second, third = orders()[:3]
    for order in (first, second, third):
        assert writer.add(order) is None
    writer.step()
    writer.drop([first])
    texts = {}
    while writer.busy:
        texts |= {id(order): written for order, written in writer.step()}
    assert set(texts) == {id(second), id(third)}
    assert [texts[id(second)], texts[id(third)]] == LlamaWriter(model, rows=3).write([second, third])


def test_a_prompt_that_is_too_long_or_empty_is_refused(writer):
    for prompt in ([], [65] * 2048):
        with pytest.raises(ModelError, match=r"at most 2048. Got \d+ tokens"):
            writer.add(Order(prompt, 1))


def test_greedy_takes_the_first_of_equal_tokens():
    assert next_token(np.array([0.0, 2.0, 2.0], np.float32), Sampling(), np.random.default_rng(0)) == 1


def test_log_probability_worked_out_by_hand():
    # softmax of (0, ln 3): 1/4 and 3/4
    logits = np.log(np.array([1.0, 3.0], np.float32))
    assert log_probability(logits, 1) == pytest.approx(np.log(0.75), abs=1e-7)


def test_shares_follow_the_probabilities():
    # p = (0.5, 0.3, 0.2). At temperature 0.5 they are squared: 25, 9 and 4 of 38.
    logits, random = np.log(np.array([0.5, 0.3, 0.2])), np.random.default_rng(1)
    draws = np.bincount([next_token(logits, Sampling(0.5), random) for _ in range(20_000)])
    assert draws / 20_000 == pytest.approx(np.array([25, 9, 4]) / 38, abs=0.015)


def test_top_p_keeps_the_smallest_set():
    logits, random = np.log(np.array([0.2, 0.5, 0.3])), np.random.default_rng(1)
    for top_p, kept in ((0.4, {1}), (0.5, {1}), (0.6, {1, 2}), (0.79, {1, 2}), (0.9, {0, 1, 2})):
        assert {next_token(logits, Sampling(1.0, top_p), random) for _ in range(300)} == kept


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=30),
    st.floats(0.05, 5),
    st.floats(0.01, 1),
    st.integers(0, 2**32),
)
def test_a_drawn_token_is_one_of_the_most_likely(logits, temperature, top_p, seed):
    values = np.array(logits, np.float32)
    token = next_token(values, Sampling(temperature, top_p), np.random.default_rng(seed))
    assert 0 <= token < len(values)
    weights = np.exp((values.astype(float) - values.max()) / temperature)
    likelier = weights[weights > weights[token]].sum() / weights.sum()
    assert likelier < top_p + 1e-9
