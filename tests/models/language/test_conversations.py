"""Language models that read conversations: texts with causal models, images and audio with transformers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from multimodal_eval.core.conversation import Audio, Part, Turn
from multimodal_eval.core.errors import InputError, ModelError, UnavailableError
from multimodal_eval.models.language import conversation_torch
from multimodal_eval.models.language.causal import open_causal_lm
from multimodal_eval.models.language.conversations import (
    TextConversationLM,
    as_plain_text,
    check_conversation_lm,
    conversation_lm_label,
    open_conversation_lm,
)
from multimodal_eval.models.source import find_model
from tests.models.language import tiny_llama, tiny_multimodal
from tests.reference import naive_llama


def user(*parts):
    return Turn("user", tuple(Part("text", part) if isinstance(part, str) else part for part in parts))


def assistant(text):
    return Turn("assistant", (Part("text", text),))


def image(seed=1, size=(20, 30)):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Part("image", Image.fromarray(pixels))


def noise(seed=1, seconds=0.5, rate=16_000):
    samples = np.random.default_rng(seed).uniform(-1, 1, int(seconds * rate)).astype(np.float32)
    return Part("audio", Audio(samples, rate))


def tone(pitch, rate=16_000, seconds=0.5):
    count = int(seconds * rate)
    samples = np.sin(2 * np.pi * pitch * np.arange(count) / rate) * np.hanning(count)
    return Part("audio", Audio(samples.astype(np.float32), rate))


def test_turns_as_plain_text():
    turns = [user(" What is it? ", image(), "Quick!"), assistant("A dog."), user(noise())]
    assert as_plain_text(turns) == "User: What is it?\nQuick!\nAssistant: A dog.\nUser:\nAssistant:"
    with_placeholders = as_plain_text(turns, {"image": "<i>", "audio": "<a>"})
    assert with_placeholders == "User: What is it?\n<i>\nQuick!\nAssistant: A dog.\nUser: <a>\nAssistant:"


class TestTexts:
    def test_the_answer_follows_the_turns(self, tmp_path):
        tensors, config = tiny_llama.write(tmp_path / "tiny")
        model = open_conversation_lm(str(tmp_path / "tiny"))
        turns = [user("What?"), assistant("A dog"), user("Which?")]
        (scores,) = model.log_probabilities([turns], ["Black "])
        context = b"User: What?\nAssistant: A dog\nUser: Which?\nAssistant:"
        whole = naive_llama.log_probabilities(tensors, config, list(context + b" Black"))
        assert scores == pytest.approx(whole[len(context) - 1 :], abs=1e-4)
        assert len(scores) == len(" Black")

    def test_images_and_audio_are_left_out(self, tmp_path):
        tiny_llama.write(tmp_path / "tiny")
        model = open_conversation_lm(str(tmp_path / "tiny"))
        assert model.reads == {"text"}
        with_media, without = model.log_probabilities([[user("a", image(), noise())], [user("a")]], ["b c", "b c"])
        assert with_media.tolist() == without.tolist()

    def test_the_label_names_the_rendering(self, tmp_path):
        tiny_llama.write(tmp_path / "tiny")
        label = conversation_lm_label(str(tmp_path / "tiny"))
        assert label == f"{open_causal_lm(str(tmp_path / 'tiny')).label}+turns"
        assert open_conversation_lm(str(tmp_path / "tiny")).label == label

    def test_a_model_with_few_positions_reads_the_last_windows(self, tmp_path):
        # 25 tokens, the last two are the answer. Windows of 16, stride 8: tokens 8 to 23 and 16 to 24 score them.
        tensors, config = tiny_llama.write(tmp_path / "tiny", max_position_embeddings=16)
        (scores,) = open_conversation_lm(str(tmp_path / "tiny")).log_probabilities([[user("abcdef")]], ["x"])
        ids = list(b"User: abcdef\nAssistant: x")
        windows = (ids[8:24], ids[16:25])
        expected = [naive_llama.log_probabilities(tensors, config, window)[-1] for window in windows]
        assert scores.tolist() == pytest.approx(expected, abs=1e-4)

    def test_the_error_for_a_missing_model_says_how_to_get_it(self):
        with pytest.raises(UnavailableError, match="mmeval fetch smollm2-135m"):
            check_conversation_lm("smollm2-135m")
        assert conversation_lm_label("smollm2-135m").endswith("+turns")

    def test_languages_come_from_the_language_model(self, tmp_path):
        tiny_llama.write(tmp_path / "tiny")
        inner = open_causal_lm(str(tmp_path / "tiny"))
        inner.languages = frozenset({"ru"})
        assert TextConversationLM(inner).languages == {"ru"}


@pytest.fixture(scope="module")
def llava(tmp_path_factory, torch_libraries):
    folder = tmp_path_factory.mktemp("models") / "llava"
    tiny_multimodal.write_llava(folder)
    return folder


@pytest.fixture(scope="module")
def qwen2_audio(tmp_path_factory, torch_libraries):
    folder = tmp_path_factory.mktemp("models") / "qwen2-audio"
    tiny_multimodal.write_qwen2_audio(folder)
    return folder


def model_loss(folder, kind, prompt, answer, config=None, **media):
    """The mean negative log-likelihood of the answer from the model's loss, and the number of its tokens."""
    import torch
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder, config=config).eval()
    inputs = processor(text=[prompt + answer], return_tensors="pt", **media)
    labels = inputs["input_ids"].clone()
    scored = len(answer.encode())  # each byte is a token
    labels[:, :-scored] = -100
    with torch.inference_mode():
        return float(model(**inputs, labels=labels).loss), scored


class TestImages:
    KIND = "LlavaForConditionalGeneration"

    def test_log_probabilities_match_the_loss_of_the_model(self, llava):
        model = open_conversation_lm(str(llava))
        assert model.reads == {"text", "image"}
        first, second = image(1), image(2)
        turns = [user(first, "What is it?"), assistant("A dog."), user("And this?", second)]
        scores = model.log_probabilities([turns[:1], turns], ["A dog.", "Zwei Hündchen"])
        prompts = (
            "[user]<image>What is it?<eos>[assistant]",
            "[user]<image>What is it?<eos>[assistant]A dog.<eos>[user]And this?<image><eos>[assistant]",
        )
        for row, prompt, answer, images in zip(
            scores, prompts, ["A dog.", "Zwei Hündchen"], [[first], [first, second]], strict=True
        ):
            loss, tokens = model_loss(llava, self.KIND, prompt, answer, images=[part.content for part in images])
            assert len(row) == tokens
            assert -row.mean() == pytest.approx(loss, abs=1e-4)

    def test_the_image_changes_the_result(self, llava):
        model = open_conversation_lm(str(llava))
        conversations = [[user(image(1), "What?")], [user(image(2), "What?")], [user("What?")]]
        first, second, without = model.log_probabilities(conversations, ["A dog"] * 3)
        assert np.abs(first - second).max() > 0.01
        assert np.abs(first - without).max() > 0.01

    def test_audio_does_not_change_an_image_model(self, llava):
        model = open_conversation_lm(str(llava)).inner
        conversations = [[user(image(), "a", noise(1))], [user(image(), "a", noise(2))], [user(image(), "a")]]
        rows = [row.tolist() for row in model.log_probabilities(conversations, ["b"] * 3)]
        assert rows[0] == rows[1] == rows[2]

    def test_a_result_does_not_depend_on_the_other_conversations(self, llava):
        model = open_conversation_lm(str(llava)).inner
        conversations = [[user(image(seed), "What?" * seed)] for seed in (1, 2, 3)] + [[user("no image")]]
        answers = ["one", "another answer", "x", "yes"]
        together = model.log_probabilities(conversations, answers)
        for turns, answer, row in list(zip(conversations, answers, together, strict=True))[::-1]:
            (alone,) = model.log_probabilities([turns], [answer])
            assert alone.tobytes() == row.tobytes()

    def test_results_are_cached(self, llava, monkeypatch):
        model = open_conversation_lm(str(llava))
        first = model.log_probabilities([[user(image(), "What?")]] * 2, ["A dog", " A dog\n"])
        monkeypatch.setattr(model.inner, "log_probabilities", None)
        again = model.log_probabilities([[user(image(), "What?", noise())]], ["A dog"])
        assert again[0].tolist() == first[0].tolist() == first[1].tolist()

    @pytest.mark.torch
    def test_without_a_template_turns_are_plain_text(self, tmp_path):
        tiny_multimodal.write_llava(tmp_path / "plain", template=False)
        model = open_conversation_lm(str(tmp_path / "plain"))
        (scores,) = model.log_probabilities([[user(image(), "What?")]], ["A dog"])
        prompt = "User: <image>\nWhat?\nAssistant:"
        loss, tokens = model_loss(tmp_path / "plain", self.KIND, prompt, " A dog", images=[image().content])
        assert len(scores) == tokens
        assert -scores.mean() == pytest.approx(loss, abs=1e-4)

    def test_special_tokens_in_a_text_are_refused(self, llava):
        model = open_conversation_lm(str(llava))
        for turns, answer in (([user("an <image> here")], "x"), ([user("x")], "yes<eos>")):
            with pytest.raises(InputError, match=r"SPECIAL_TOKEN: .* contains '<(image|eos)>'"):
                model.log_probabilities([turns], [answer])

    def test_a_conversation_that_is_too_long_is_refused(self, llava):
        with pytest.raises(InputError, match=r"TOO_LONG: a conversation has 523 tokens, .* at most 512"):
            # [user] + 500 + <eos> + [assistant] = 6 + 500 + 1 + 11 tokens, and 5 for the answer
            open_conversation_lm(str(llava)).log_probabilities([[user("a" * 500)]], ["A dog"])

    @pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # from its processor
    @pytest.mark.torch
    def test_a_model_that_sees_later_tokens_is_refused(self, tmp_path):
        tiny_multimodal.write_paligemma(tmp_path / "paligemma")
        model = open_conversation_lm(str(tmp_path / "paligemma"))
        for _ in range(2):
            with pytest.raises(ModelError, match="not a causal language model"):
                model.log_probabilities([[user(image(), "What?")]], ["A dog"])

    @pytest.mark.torch
    def test_a_model_with_cross_attention_to_images(self, tmp_path):
        tiny_multimodal.write_mllama(tmp_path / "mllama")
        model = open_conversation_lm(str(tmp_path / "mllama"))
        (scores,) = model.log_probabilities([[user(image(), "What?")]], ["A dog"])
        prompt = "[user]<|image|>What?<eos>[assistant]"
        kind = "MllamaForConditionalGeneration"
        loss, tokens = model_loss(tmp_path / "mllama", kind, prompt, "A dog", images=[image().content])
        assert len(scores) == tokens
        assert -scores.mean() == pytest.approx(loss, abs=1e-4)

    def test_the_label_before_and_after_opening(self, llava):
        label = conversation_lm_label(str(llava))
        assert label.startswith("llava@")
        assert label.endswith("+turns")
        assert open_conversation_lm(f"torch:{llava}").label == label
        check_conversation_lm(str(llava))

    def test_another_kind_of_model_with_a_processor_is_refused(self, llava, tmp_path):
        import transformers

        for file in llava.glob("*processor*"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        config = transformers.CLIPVisionConfig(hidden_size=24, intermediate_size=8, num_hidden_layers=1)
        transformers.CLIPVisionModel(config).save_pretrained(tmp_path)
        with pytest.raises(ModelError, match="cannot open"):
            open_conversation_lm(str(tmp_path))

    def test_missing_weights_are_named(self, llava, tmp_path):
        from safetensors.torch import load_file, save_file

        for file in llava.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        tensors = load_file(tmp_path / "model.safetensors")
        missing = next(name for name in tensors if "layers.1" in name and "q_proj" in name)
        del tensors[missing]
        save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ModelError, match=r"lacks weights of its model: .*layers\.1.*q_proj"):
            open_conversation_lm(str(tmp_path))

    def test_bf16_is_close_to_float32_and_in_the_label(self, llava):
        turns = [user(image(), "What?")]
        (exact,) = open_conversation_lm(str(llava)).log_probabilities([turns], ["A dog"])
        model = open_conversation_lm(f"{llava}+bf16")
        assert model.label.endswith("+torch-bf16+turns")
        (close,) = model.log_probabilities([turns], ["A dog"])
        assert close.tolist() == pytest.approx(exact.tolist(), abs=0.2)
        assert close.tolist() != exact.tolist()
        with pytest.raises(ModelError, match="cannot be run as int8"):
            conversation_lm_label(f"{llava}+int8")

    def test_batches_of_a_gpu_give_the_same_results(self, llava, monkeypatch):
        """With and without images, of any length: in the order of the input, also if memory is short."""
        model = conversation_torch.TorchConversationLM(find_model(str(llava)))
        texts = ["What?", "Which one is it, and why?", "A", "Where is it?", "Who", "What is on the left?"]
        turns = [[user(image(n), text)] if n % 3 else [user(text)] for n, text in enumerate(texts * 2)]
        answers = [("A dog " * (n % 4)).strip() for n in range(12)]  # three are empty
        expected = model.log_probabilities(turns, answers)
        asked = [model._asked(*pair) for pair in zip(turns, answers, strict=True)]
        read, sizes = model.batches._read, []

        def limited(rows):
            sizes.append(len(rows))
            if len(rows) > 2:
                raise model.torch.OutOfMemoryError("CUDA out of memory")
            return read(rows)

        for _ in range(2):
            scores = model.batches.scored(iter(asked))
            assert [len(row) for row in scores] == [len(answer) for answer in answers]
            for row, right in zip(scores, expected, strict=True):
                assert row.tolist() == pytest.approx(right.tolist(), abs=1e-5)
            monkeypatch.setattr(model.batches, "_read", limited)
        assert model.batches.can_batch
        assert {1, 2, 3} <= set(sizes)

    def test_a_model_that_changes_in_a_batch_is_not_batched(self, llava, monkeypatch):
        model = conversation_torch.TorchConversationLM(find_model(str(llava)))
        asked = [model._asked([user(image(n), "What?")], "A dog") for n in range(3)]
        read = model.batches._read
        monkeypatch.setattr(model.batches, "_read", lambda rows: [row + len(rows) - 1 for row in read(rows)])
        scores = model.batches.scored(iter(asked))
        assert model.batches.can_batch is False
        for row, conversation in zip(scores, asked, strict=True):
            assert row.tolist() == pytest.approx(model.score_alone(conversation).tolist(), abs=1e-5)


class TestAudio:
    KIND = "Qwen2AudioForConditionalGeneration"
    PROMPT = "[user]<|audio_bos|><|AUDIO|><|audio_eos|>What is it?<eos>[assistant]"

    def test_log_probabilities_match_the_loss_of_the_model(self, qwen2_audio):
        model = open_conversation_lm(str(qwen2_audio))
        assert model.reads == {"text", "audio"}
        (scores,) = model.log_probabilities([[user(noise(), "What is it?")]], ["A bell."])
        loss, tokens = model_loss(qwen2_audio, self.KIND, self.PROMPT, "A bell.", audio=[noise().content.samples])
        assert len(scores) == tokens
        assert -scores.mean() == pytest.approx(loss, abs=1e-4)

    def test_the_audio_changes_the_result(self, qwen2_audio):
        model = open_conversation_lm(str(qwen2_audio))
        conversations = [[user(audio, "What?")] for audio in (tone(440), tone(3000), tone(440, seconds=0.25))]
        rows = model.log_probabilities([*conversations, [user("What?")]], ["A bell"] * 4)
        for first, second in combinations(rows, 2):
            assert np.abs(first - second).max() > 0.01

    def test_audio_is_resampled_to_the_rate_of_the_model(self, qwen2_audio):
        rates = (16_000, 8_000, 44_100, 48_000)
        model = open_conversation_lm(str(qwen2_audio))
        expected, *resampled = model.log_probabilities([[user(tone(440, rate), "What?")] for rate in rates], ["ab"] * 4)
        for row in resampled:
            assert row.tolist() == pytest.approx(expected.tolist(), abs=0.005)
        assert [len(model.inner._resampled(tone(440, rate).content)) for rate in rates] == [8_000] * 4

    def test_too_long_audio_gives_a_warning(self, qwen2_audio):
        model = open_conversation_lm(str(qwen2_audio))
        with pytest.warns(UserWarning, match=r"lasts 1\.5 s, .* pieces of 1 s"):
            model.log_probabilities([[user(noise(seconds=1.5), "What?")]], ["x"])


class TestBoth:
    """Models whose processors need torchvision."""

    @pytest.mark.torch
    def test_positions_by_row_and_column(self, tmp_path):
        pytest.importorskip("torchvision")
        tiny_multimodal.write_qwen2_vl(tmp_path / "qwen2-vl")
        model = open_conversation_lm(str(tmp_path / "qwen2-vl")).inner
        wide = [user(image(size=(40, 20)), "What?")]
        first, plain, second = model.log_probabilities([wide, [user("no image")], wide], ["A dog", "x y", "A dog"])
        placeholder = "<|vision_start|><|image_pad|><|vision_end|>"
        loss, tokens = model_loss(
            tmp_path / "qwen2-vl",
            "Qwen2VLForConditionalGeneration",
            f"[user]{placeholder}What?<eos>[assistant]",
            "A dog",
            images=[image(size=(40, 20)).content],
        )
        assert len(first) == tokens
        assert -first.mean() == pytest.approx(loss, abs=1e-4)
        assert first.tobytes() == second.tobytes()
        assert model.log_probabilities([[user("no image")]], ["x y"])[0].tobytes() == plain.tobytes()

    @pytest.mark.torch
    def test_images_and_audio_in_one_conversation(self, tmp_path):
        pytest.importorskip("torchvision")
        import transformers

        folder = tmp_path / "omni"
        tiny_multimodal.write_qwen2_omni(folder)
        model = open_conversation_lm(str(folder))
        assert model.reads == {"text", "image", "audio"}
        pairs = [(image(1), tone(440)), (image(2), tone(440)), (image(1), tone(3000))]
        rows = model.log_probabilities([[user(*pair, "What?")] for pair in pairs], ["A dog"] * 3)
        for first, second in combinations(rows, 2):
            assert np.abs(first - second).max() > 0.01
        placeholders = "<|vision_bos|><|IMAGE|><|vision_eos|><|audio_bos|><|AUDIO|><|audio_eos|>"
        loss, tokens = model_loss(
            folder,
            "Qwen2_5OmniThinkerForConditionalGeneration",
            f"[user]{placeholders}What?<eos>[assistant]",
            "A dog",
            config=transformers.AutoConfig.from_pretrained(folder).thinker_config,
            images=[image(1).content],
            audio=[tone(440).content.samples],
        )
        assert len(rows[0]) == tokens
        assert -rows[0].mean() == pytest.approx(loss, abs=1e-4)
