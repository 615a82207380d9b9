"""Warnings on the command line."""

from __future__ import annotations

import warnings

import pytest

from multimodal_eval.cli.messages import show_warnings_plainly
from multimodal_eval.generate.providers.endpoint_model import OptionalFieldWarning


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda *_, **__: None)
        yield


def test_a_refused_wish_is_one_line(capsys):
    show_warnings_plainly()
    warnings.warn("m is asked without a JSON schema", OptionalFieldWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: m is asked without a JSON schema\n"
    warnings.warn("something else", stacklevel=1)
    assert capsys.readouterr().err == ""
