"""Settings of Sphinx. The build passes the version and whether it is a release in the environment."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
ASSETS = HERE.parents[2] / "src" / "multimodal_eval" / "report" / "assets"

project = "multimodal-eval"
author = "The multimodal-eval authors"
project_copyright = author
version = release = os.environ.get("SITE_VERSION", "dev")
is_released = os.environ.get("SITE_RELEASED") == "1"

extensions = [
    *("myst_parser", "sphinx_design", "sphinx_copybutton"),
    *("tools.site.sphinx.formulas", "tools.site.sphinx.navigation"),
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
suppress_warnings = ["misc.highlighting_failure"]  # excerpts of JSON are not documents
nitpicky = True
exclude_patterns: list[str] = []
smartquotes = False

html_theme = "furo"
html_title = "multimodal-eval"
html_logo = html_favicon = str(ASSETS / "logo.svg")
html_static_path = [str(HERE / "static"), str(ASSETS / "tokens.css")]
html_css_files = ["tokens.css", "site.css"]
html_js_files = ["site.js"]
templates_path = [str(HERE / "templates")]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_sidebars = {
    "**": [
        "sidebar/scroll-start.html",
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
_COLOURS = {
    "color-brand-primary": "var(--accent)",
    "color-brand-content": "var(--accent)",
    "color-brand-visited": "var(--accent)",
    "color-background-primary": "var(--page)",
    "color-background-secondary": "var(--raised)",
    "color-background-border": "var(--line)",
    "color-foreground-primary": "var(--ink)",
    "color-foreground-secondary": "var(--quiet)",
    "color-foreground-muted": "var(--quiet)",
    "color-code-background": "var(--raised)",
    "color-code-foreground": "var(--ink)",
    "color-highlighted-background": "var(--match-1)",
    "font-stack": "var(--font-text)",
    "font-stack--monospace": "var(--font-code)",
}
html_theme_options = {
    "light_css_variables": _COLOURS,
    "dark_css_variables": _COLOURS,
    "top_of_page_buttons": [],
    "navigation_with_keys": True,
}
if not is_released:
    html_theme_options["announcement"] = (
        f"This is the documentation of {release}, which is not released. "
        '<a href="#" data-newest hidden>Read that of the newest release.</a>'
    )
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div.highlight pre"
copybutton_exclude = ".linenos, .gp, .go"
