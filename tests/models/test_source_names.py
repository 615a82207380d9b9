"""The names of models as users write them."""

from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.source import ModelName, parse_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mine", ("mine", False, "float32")),
        ("mine+int8", ("mine", False, "int8")),
        ("torch:mine", ("mine", True, "float32")),
        ("torch:a/b@refs/pr/1+bf16", ("a/b@refs/pr/1", True, "bf16")),
        ("hf:a/b+bf16", ("hf:a/b", False, "bf16")),
    ],
)
def test_a_name_has_a_way_to_run_it_and_a_number_format(name, parts):
    assert parse_name(name) == ModelName(*parts)
    assert parse_name(name).torch_format == ("bf16" if parts[2] == "bf16" else "float32")


def test_each_library_has_its_formats():
    parse_name("torch:mine+bf16").refuse_format(runs_in_torch=True)
    parse_name("mine+int8").refuse_format(runs_in_torch=False)
    parse_name("mine").refuse_format(runs_in_torch=True)
    with pytest.raises(ModelError, match=r"as int8 in torch\. Write mine\+int8"):
        parse_name("torch:mine+int8").refuse_format(runs_in_torch=True)
    with pytest.raises(ModelError, match=r"as int8 in torch\. onnxruntime cannot run this model"):
        parse_name("mine+int8").refuse_format(runs_in_torch=True)
    with pytest.raises(ModelError, match=r"as bf16 in onnxruntime\. Write torch:mine\+bf16"):
        parse_name("mine+bf16").refuse_format(runs_in_torch=False)
