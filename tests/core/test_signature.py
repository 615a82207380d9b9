from __future__ import annotations

from multimodal_eval import Signature


def test_text_and_object():
    signature = Signature("cider", "1", {"tok": "ptb", "df": "coco-val2014"})
    assert str(signature) == "cider|v:1|tok:ptb|df:coco-val2014"
    assert signature.to_dict() == {"metric": "cider", "version": "1", "tok": "ptb", "df": "coco-val2014"}


def test_weights_are_written_as_a_formula():
    signature = Signature("composite_score", "1", {"weights": {"a": 0.25, "b": 0.75}})
    assert str(signature) == "composite_score|v:1|weights:0.25*a+0.75*b"


def test_options_of_any_type():
    signature = Signature("mine", "1", {"names": {"a": "x"}, "list": [1, 2]}).extended(seed=3)
    assert str(signature) == "mine|v:1|names:x*a|list:[1, 2]|seed:3"
