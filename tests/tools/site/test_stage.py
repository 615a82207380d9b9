"""Pages as the site shows them."""

from __future__ import annotations

from tools.site.pages import DOCS, ROOT
from tools.site.stage import displayed, relinked


def test_commands_get_a_prompt_and_outputs_a_class():
    shown = displayed("# T\n\n<!-- exit: 1 -->\n    mmeval a \\\n      -o b\n    mmeval c\n\n```\nprinted\n```\n")
    commands = "```console\n$ mmeval a \\\n  -o b\n$ mmeval c\n```"
    assert shown == f"# T\n\n{commands}\n\n```{{code-block}} text\n:class: output\n\nprinted\n```\n"


def test_the_reason_of_a_block_that_is_not_run_is_shown():
    shown = displayed("<!-- not run: needs `a` & <b> -->\n    pip install x\n")
    reason = '<p class="not-run">Not executed when this site is built: needs <code>a</code> &amp; &lt;b>.</p>'
    assert shown == f"{reason}\n\n```console\n$ pip install x\n```\n"
    fenced = displayed("<!-- not run: why -->\n```python\n1\n```\n")
    assert fenced == '<p class="not-run">Not executed when this site is built: why.</p>\n\n```python\n1\n```\n'


def test_links_lead_to_pages_of_the_site(tmp_path):
    text = "[c](../CONTRIBUTING.md#layers) [s](scoring.md) [e](../examples/early_stopping.py) [d](../tests) `[x](y)`\n"
    shown = relinked(text + "```\n[z](../CONTRIBUTING.md)\n```\n", DOCS / "README.md", tmp_path)
    assert shown.startswith(
        "[c](contributing.md#layers) [s](scoring.md) [e](files/examples/early_stopping.py) d `[x](y)`"
    )
    assert "[z](../CONTRIBUTING.md)" in shown
    assert (tmp_path / "files" / "examples" / "early_stopping.py").exists()


def test_links_of_a_card_and_of_a_page_above_docs(tmp_path):
    assert relinked("[a](../scoring.md)", DOCS / "metrics" / "bleu.md", tmp_path) == "[a](../scoring.md)"
    assert relinked("[a](docs/metrics/bleu.md)", ROOT / "CONTRIBUTING.md", tmp_path) == "[a](metrics/bleu.md)"
