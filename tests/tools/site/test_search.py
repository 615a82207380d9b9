"""The texts of pages for the excerpts of a search."""

from __future__ import annotations

import json

from tools.site.search import main_text, write_texts

PAGE = """<!doctype html><nav>menu</nav><article role="main"><h1>CIDEr<a class="headerlink" href="#x">¶</a></h1>
<p>a &lt;b&gt; <img src="x.png"> <b>c</b>.</p><article>inner</article><script>no()</script> end</article>
<footer>foot</footer>"""


def test_only_the_main_part():
    assert main_text(PAGE) == "CIDEr a <b> c. inner end"
    assert main_text("<p>no main part</p>") == ""


def test_the_script(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "cider.html").write_text('<div role="main">a &lt;/script&gt; b</div>')
    write_texts(tmp_path)
    script = (tmp_path / "search-texts.js").read_text()
    assert "</script>" not in script
    texts = json.loads(script.removeprefix("window.siteTexts = ").removesuffix(";\n"))
    assert texts == {"metrics/cider.html": "a </script> b"}
