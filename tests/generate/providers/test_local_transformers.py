"""`transformers:DIR`: models with random weights that answer requests about texts, images and audio."""

from __future__ import annotations

import asyncio
import io
import json
import wave

import numpy as np
import pytest
from PIL import Image

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ConfigError, ModelError
from multimodal_eval.generate.protocol import Media, RejectedError, Request, Text, Turn
from multimodal_eval.generate.registry import find_generator
from tests.models.language import tiny_llama, tiny_multimodal

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "llava"
    tiny_multimodal.write_llava(folder)
    return folder


def opened(folder, **extra):
    return find_generator(GenerationConfig(model=f"transformers:{folder}", parameters=Parameters(extra=extra)))


def png(seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (20, 30, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return Media("image", "image/png", stream.getvalue())


def wav(seed):
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(np.random.default_rng(seed).integers(-9000, 9000, 8_000).astype("<i2").tobytes())
    return Media("audio", "audio/wav", stream.getvalue())


def request_for(*parts, **parameters):
    return Request("a", (Turn("user", parts),), Parameters(max_tokens=8, **parameters))


def answers(generator, *requests):
    async def ask_all():
        return await asyncio.gather(*(generator.answer(request) for request in requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_a_batch_of_images_and_texts_equals_single_requests(llava):
    requests = [request_for(png(seed), Text("What?" * seed), logprobs=True) for seed in range(1, 6)]
    together = answers(opened(llava, batch_size=4), *requests)
    for request, answer in zip(requests, together, strict=True):
        (alone,) = answers(opened(llava, batch_size=1), request)
        assert (alone.text, alone.input_tokens, alone.output_tokens) == (
            answer.text,
            answer.input_tokens,
            answer.output_tokens,
        )
        assert answer.logprobs == pytest.approx(alone.logprobs, abs=1e-4)
    assert len({tuple(answer.logprobs) for answer in together}) == 5


def test_batches_by_tokens_hold_as_many_requests_as_fit(llava, monkeypatch):
    from multimodal_eval.models.language.torch_writer import TorchWriter

    batches: list[int] = []
    write = TorchWriter.write

    def counted(self, conversations, writing):
        batches.append(len(conversations))
        return write(self, conversations, writing)

    requests = [request_for(Text("What?" * length)) for length in (1, 30, 1, 30, 1, 1)]
    alone = [answers(opened(llava, batch_size=1), request)[0] for request in requests]
    short, long = alone[0].input_tokens + 8, alone[1].input_tokens + 8  # with the 8 tokens of an answer
    monkeypatch.setattr(TorchWriter, "write", counted)
    assert [answer.text for answer in answers(opened(llava, batch_tokens=long), *requests)] == [
        answer.text for answer in alone
    ]
    assert long // short >= 4  # four short requests fit, and no long one beside them or another
    assert sorted(batches) == [1, 1, 4]
    with pytest.raises(ConfigError, match="`batch_tokens` must be a positive integer"):
        opened(llava, batch_tokens=0)


def test_log_probabilities_are_those_of_the_scorer(llava):
    from multimodal_eval.core.conversation import Part
    from multimodal_eval.core.conversation import Turn as Said
    from multimodal_eval.media.images import load_image_any
    from multimodal_eval.models.language.conversation_torch import TorchConversationLM
    from multimodal_eval.models.language.torch_writer import Conversation, TorchWriter, Writing
    from multimodal_eval.models.language.writer import Sampling
    from multimodal_eval.models.source import find_model

    said = [
        (Said("user", (Part("image", load_image_any(png(seed).content)), Part("text", "What?" * seed))),)
        for seed in (1, 2, 3)
    ]
    writing = Writing(8, Sampling(1.5, seed=3), logprobs=True)
    texts = TorchWriter(find_model(str(llava))).write([Conversation(turns) for turns in said], writing)
    scorer = TorchConversationLM(find_model(str(llava)))
    for turns, (_, written) in zip(said, texts, strict=True):
        count = len(written.logprobs)
        scores = scorer._read(scorer._prompt(turns), list(written.tokens[:count]), count - 1)
        assert written.logprobs == pytest.approx(scores.tolist(), abs=1e-3)


def test_random_answers_depend_on_the_seed_and_not_on_the_others(llava):
    generator = opened(llava)
    requests = [request_for(png(1), Text("What?"), temperature=1.5, seed=seed) for seed in (1, 2, 1)]
    first, second, third = answers(generator, *requests)
    assert first == third
    assert first.text != second.text
    assert answers(opened(llava), requests[1]) == [second]


def test_a_dialogue_with_a_system_prompt(llava):
    turns = (
        Turn("user", (png(1), Text("What?"))),
        Turn("assistant", (Text("A dog."),)),
        Turn("user", (png(2), Text("And this?"))),
    )
    (answer,) = answers(opened(llava), Request("a", turns, Parameters(max_tokens=4)))
    assert answer.output_tokens in range(1, 5)
    assert answer.model == "llava"
    with_system = Request("a", (Turn("system", (Text("Be short."),)), *turns), Parameters(max_tokens=4))
    (longer,) = answers(opened(llava), with_system)
    assert longer.input_tokens == answer.input_tokens + len("[system]Be short.") + 1  # and the end token


def test_audio(tmp_path):
    tiny_multimodal.write_qwen2_audio(tmp_path / "audio")
    generator = opened(tmp_path / "audio")
    first, second, image = answers(
        generator,
        request_for(wav(1), Text("What?"), logprobs=True),
        request_for(wav(2), Text("What?"), logprobs=True),
        request_for(png(1), Text("What?")),
    )
    assert first.logprobs != second.logprobs
    assert isinstance(image, RejectedError)
    assert "does not read this kind of part: image" in str(image)


def test_text_only_models_and_stops(tmp_path):
    folder = tmp_path / "text"
    tiny_llama.write(folder, architectures=["LlamaForCausalLM"])
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<bos>", "bos_token": "<bos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    generator = opened(folder)
    whole, image = answers(generator, request_for(Text("Hello"), logprobs=True), request_for(png(1)))
    assert isinstance(image, RejectedError)
    assert (whole.finish, len(whole.logprobs)) == ("length", 8)
    stop = whole.text[3]
    (cut,) = answers(generator, request_for(Text("Hello"), stop=[stop], logprobs=True))
    assert (cut.text, cut.finish) == (whole.text[: whole.text.index(stop)], "stop")
    assert cut.logprobs == pytest.approx(whole.logprobs[: len(cut.logprobs)], abs=1e-5)


def test_requests_that_do_not_fit_are_refused_alone(llava):
    long, fine, special = answers(
        opened(llava), request_for(Text("x" * 600)), request_for(Text("fine")), request_for(Text("an <image> tag"))
    )
    assert isinstance(long, RejectedError)
    assert "reads at most 512 tokens" in str(long)
    assert fine.output_tokens in range(1, 9)
    assert isinstance(special, RejectedError)
    assert "'<image>', which is a special token" in str(special)


def test_broken_files_are_told_to_everyone_who_waits(llava, tmp_path):
    (tmp_path / "broken").mkdir()
    for path in llava.iterdir():
        (tmp_path / "broken" / path.name).write_bytes(
            path.read_bytes()[: 500 if path.suffix == ".safetensors" else None]
        )
    results = answers(opened(tmp_path / "broken"), request_for(Text("a")), request_for(Text("b")))
    assert all(isinstance(result, ModelError) for result in results)


def test_the_label_names_the_files_and_wrong_settings_are_refused(llava):
    from multimodal_eval.models.source import find_model

    label = f"transformers:llava@{find_model(str(llava)).revision}"
    assert opened(llava).label == label
    assert opened(f"{llava}+bf16").label == f"{label}+bf16"
    with pytest.raises(ModelError, match="cannot be run as int8"):
        opened(f"{llava}+int8")
    with pytest.raises(ConfigError, match="`batch_size` must be a positive integer"):
        opened(llava, batch_size=0)
    with pytest.raises(ConfigError, match="has no parameter 'top_k'"):
        opened(llava, top_k=3)
