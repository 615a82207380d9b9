"""Folders of others in the layout of transformers: nothing in them loads code, kernels or files from elsewhere.

The checks need no torch. What the library does with a folder that passes is tried with the library itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.errors import ModelError
from multimodal_eval.generate.protocol import Request, Text, Turn
from multimodal_eval.generate.registry import find_generator
from multimodal_eval.models.foreign_folder import check_folder
from multimodal_eval.models.source import find_model
from tests.models.language import tiny_llama

CODE = "from pathlib import Path\nPath({marker!r}).write_text('ran')\nclass Evil: pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_llama.write(tmp_path / "model")
    return tmp_path / "model"


def change(path: Path, **changes: object) -> None:
    """Set some keys of a JSON file, which may not exist yet."""
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | changes))


def opened(folder: Path):
    return find_generator(GenerationConfig(model=f"transformers:{folder}", parameters=Parameters()))


def refusal(folder: Path) -> str:
    """Why `transformers:DIR` is refused: before torch or transformers is imported, and so also without them."""
    before = {*sys.modules}
    with pytest.raises(ModelError) as refused:
        opened(folder)
    assert not {"torch", "transformers"} & ({*sys.modules} - before)
    return str(refused.value)


KERNEL = "kernels-community/flash-attn2"


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("config.json", "_attn_implementation", KERNEL),
        ("config.json", "attn_implementation", "flash_attention_2"),  # a kernel if flash_attn is not installed
        ("config.json", "attn_implementation", {"text_config": KERNEL}),
        ("config.json", "_experts_implementation", "someone/experts@main:fast"),
        ("config.json", "quantization_config", {"quant_method": "mxfp4"}),
        ("config.json", "configuration_files", ["config.4.0.0.json"]),
        ("config.json", "transformers_weights", "adapter_model.bin"),
        ("config.json", "fusion_config", {"patch": True}),
        ("config.json", "use_pretrained_backbone", True),
        ("config.json", "checkpoint_path", "weights.pt"),
        ("config.json", "architecture", "hf-hub:someone/model"),
        ("tokenizer_config.json", "fast_tokenizer_files", ["tokenizer.4.0.json"]),
        ("processor_config.json", "audio_tokenizer", {"audio_tokenizer_name_or_path": "someone/codec"}),
        ("audio_tokenizer_config.json", "audio_tokenizer_name_or_path", "someone/codec"),
    ],
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_setting_that_loads_something_is_refused_with_file_and_key(folder: Path, file, key, value, is_nested):
    change(folder / file, **({"text_config": [{"inner": {key: value}}]} if is_nested else {key: value}))
    message = refusal(folder)
    assert message.startswith(f"{folder / file}: the setting {key!r} is refused: ")
    change(folder / file, **{"text_config" if is_nested else key: None})
    check_folder(find_model(str(folder)))


def test_usual_settings_pass(folder: Path):
    change(
        folder / "config.json",
        _name_or_path="someone/base",
        auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"},  # ignored, see below
        _attn_implementation="sdpa",
        text_config={"_name_or_path": "someone/text", "attn_implementation": {"": "eager"}},
        id2label={"0": "and/or"},
    )
    tokens = {"eos_token": "</s>", "chat_template": "{% for m in messages %}a/b{% endfor %}"}
    stale = {
        "special_tokens_map_file": "/nowhere/special_tokens_map.json",
        "vocab_file": "\0",
        "tokenizer_file": "x" * 9999,
    }
    change(folder / "tokenizer_config.json", **tokens, **stale, merges_file="tokenizer.json")
    check_folder(find_model(str(folder)))


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_file_of_this_machine_is_refused(folder: Path, is_relative):
    secret = folder.parent / "secret.txt"
    secret.write_text("secret")
    name = "../secret.txt" if is_relative else str(secret)
    change(folder / "tokenizer_config.json", vocab_file=name)
    assert "'vocab_file' is refused: it names a file of this machine that is not in the folder" in refusal(folder)


def test_an_adapter_is_refused(folder: Path):
    change(folder / "adapter_config.json", base_model_name_or_path="someone/base")
    assert "makes the folder an adapter of another model. Merge it" in refusal(folder)


def test_links(folder: Path):
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "model.safetensors").rename(outside / "model.safetensors")
    (folder / "model.safetensors").symlink_to(outside / "model.safetensors")  # weights are only data
    (folder / "also.json").symlink_to("config.json")
    (folder / "checkpoint-500").mkdir()  # is not read
    (folder / "checkpoint-500" / "adapter_config.json").symlink_to(outside)
    check_folder(find_model(str(folder)))
    (outside / "template").write_text("secret")
    (folder / "chat_template.jinja").symlink_to(outside / "template")
    assert f"is a link to {outside / 'template'}, which is not in the folder" in refusal(folder)
    (folder / "chat_template.jinja").unlink()
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "rag.jinja").symlink_to(outside / "template")
    assert "rag.jinja is a link to" in refusal(folder)


def test_links_of_the_cache_of_the_hub(tmp_path: Path):
    repository = tmp_path / "models--someone--llama"
    for name in ("blobs", "snapshots"):
        (repository / name).mkdir(parents=True)
    tiny_llama.write(folder := repository / "snapshots" / "0123")
    (folder / "config.json").rename(repository / "blobs" / "abc")
    (folder / "config.json").symlink_to("../../blobs/abc")
    check_folder(find_model(str(folder)))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt", "weights.pkl", "tf_model.h5"])
def test_pickles_are_refused_by_name(folder: Path, name):
    (folder / "model.safetensors").rename(folder / name)
    assert f"{name} may run code when it is opened" in refusal(folder)
    (folder / "model.onnx").write_bytes(b"")  # weights of another library do not help
    message = refusal(folder)
    assert f"{folder / name} may run code when it is opened, and is not loaded. Convert the weights" in message


@pytest.mark.parametrize("shard", ["pytorch_model-1.bin", "../other/model.safetensors", "a\\b.safetensors", 5])
def test_an_index_names_only_safetensors_of_its_folder(folder: Path, shard):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    change(index, weight_map={"a": "model-1.safetensors", "b": shard})
    assert f"{index} must name files *.safetensors in its folder. Got {shard!r} instead." in refusal(folder)
    change(index, weight_map={"a": "model-1.safetensors"})
    check_folder(find_model(str(folder)))
    change(index, weight_map=None)
    assert "must have an object `weight_map`" in refusal(folder)


def test_broken_json_is_an_error_of_ours(folder: Path):
    (folder / "generation_config.json").write_text("[" * 100_000)
    assert "generation_config.json is not valid JSON" in refusal(folder)


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.write_text, (self.marker, "ran")


def ask(folder: Path):
    return asyncio.run(opened(folder).answer(Request("a", (Turn("user", (Text("hi"),)),), Parameters(max_tokens=2))))


@pytest.mark.torch
def test_code_and_pickles_beside_safetensors_are_not_opened(folder: Path, tmp_path: Path):
    """With the real library: `auto_map`, a custom generate function and pickles change nothing."""
    change(folder / "tokenizer_config.json", eos_token="<bos>", tokenizer_class="PreTrainedTokenizerFast")
    plain, marker = ask(folder).text, tmp_path / "marker"
    (folder / "modeling_evil.py").write_text(CODE.format(marker=str(marker)))
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(CODE.format(marker=str(marker)))
    names = ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer", "AutoProcessor")
    change(folder / "config.json", auto_map=dict.fromkeys(names, "modeling_evil.Evil"))
    change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["modeling_evil.Evil", "modeling_evil.Evil"]})
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt"):
        (folder / name).write_bytes(pickle.dumps(_Evil(marker)))
    assert ask(folder).text == plain
    assert not marker.exists()


@pytest.mark.torch
def test_a_model_that_has_only_code_is_refused(folder: Path, tmp_path: Path):
    marker = tmp_path / "marker"
    (folder / "modeling_evil.py").write_text(CODE.format(marker=str(marker)))
    names = ("AutoConfig", "AutoModelForCausalLM")
    change(folder / "config.json", model_type="evil", auto_map=dict.fromkeys(names, "modeling_evil.Evil"))
    with pytest.raises(ModelError, match="contains custom code"):
        ask(folder)
    assert not marker.exists()


@pytest.mark.torch
def test_kernels_of_the_hub_are_off_unless_the_user_wants_them(folder: Path):
    script = (
        "from multimodal_eval.models.foreign_folder import transformers_for\n"
        "from multimodal_eval.models.source import find_model\n"
        f"transformers_for(find_model({str(folder)!r}), 'a test')\n"
        "from transformers.integrations import hub_kernels\n"
        "print(hub_kernels._TRANSFORMERS_USE_HUB_KERNELS)"
    )
    variables = {name: value for name, value in os.environ.items() if name != "USE_HUB_KERNELS"}
    for chosen, expected in (({}, "0"), ({"USE_HUB_KERNELS": "yes"}, "YES")):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=variables | chosen, check=True
        )
        assert done.stdout.strip() == expected


@pytest.mark.torch
def test_the_library_would_load_the_kernel_that_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Without the check, the setting of a foreign config.json reaches the loader of kernels."""
    import transformers
    from transformers.integrations import hub_kernels

    asked: list[str] = []
    monkeypatch.setattr(hub_kernels, "get_kernel", lambda name, **options: asked.append(name))
    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    change(folder / "config.json", _attn_implementation=KERNEL)
    with pytest.raises(Exception):  # noqa: B017
        transformers.AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    assert asked == [KERNEL]
    asked.clear()
    refusal(folder)
    assert not asked
