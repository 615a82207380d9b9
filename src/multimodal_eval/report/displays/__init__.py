"""Results in notebooks: one module per kind of result, which turns it into blocks of text, tables and drawings.

`show.py` finds the module of a class. `as_html.py` and `as_text.py` write the blocks. The HTML has inline styles only,
no script and no address of another server, and its colours are readable in light and dark themes.
"""
