"""Chat templates: their files, what they render, and that they run in a sandbox."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.language.chat_template import ChatTemplate
from multimodal_eval.models.source import find_model
from tests.models.language import tiny_llama

TALK = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi <b> é"}]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}\n"
    "    {% if message['role'] == 'tool' %}{{ raise_exception('no tools') }}{% endif %}\n"
    "[{{ message['role'] }}] {{ message['content'] | trim }}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def template(folder, settings=None, file=None):
    tiny_llama.write(folder)
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if file is not None:
        (folder / "chat_template.jinja").write_text(file)
    return ChatTemplate(find_model(str(folder)))


# The newline after a block and the spaces before it are removed.
EXPECTED = "<s>[system] Be short.\n[user] Hi <b> é\n[assistant]"


@pytest.mark.parametrize(
    "settings",
    [
        {"chat_template": TEMPLATE, "bos_token": "<s>"},
        {"chat_template": TEMPLATE, "bos_token": {"content": "<s>", "lstrip": False}},
        {"chat_template": [{"name": "tools", "template": "x"}, {"name": "default", "template": TEMPLATE}]}
        | {"bos_token": "<s>"},
    ],
)
def test_the_settings_of_the_tokenizer(tmp_path, settings):
    assert template(tmp_path, settings).render(TALK) == EXPECTED


def test_a_file_of_its_own(tmp_path):
    assert template(tmp_path, {"bos_token": "<s>"}, TEMPLATE).render(TALK) == EXPECTED


def test_a_model_without_a_template_continues_the_text(tmp_path):
    rendered = template(tmp_path)
    assert rendered.source is None
    assert rendered.render(TALK) == "Be short.\nHi <b> é"


def test_json_is_written_as_transformers_does(tmp_path):
    rendered = template(tmp_path, {"chat_template": "{{ messages | tojson }}"}).render(TALK[1:])
    assert rendered == '[{"role": "user", "content": "Hi <b> é"}]'


def test_a_template_may_refuse_a_conversation(tmp_path):
    with pytest.raises(ModelError, match="cannot render a conversation: TemplateError: no tools"):
        template(tmp_path, {"chat_template": TEMPLATE}).render([{"role": "tool", "content": "x"}])


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ 'x' * 10**12 }}",
        "{% for _ in range(10**9) %}x{% endfor %}",
    ],
)
def test_a_hostile_template_is_an_error(tmp_path, source):
    with pytest.raises(ModelError, match="cannot render a conversation"):
        template(tmp_path, {"chat_template": source}).render(TALK)


def test_a_broken_template_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="is not a valid template"):
        template(tmp_path, {"chat_template": "{% for"})
