"""A page per benchmark, which is the card of its recipe, and their index."""

from __future__ import annotations

from multimodal_eval.benchmarks.recipes import recipe_names, recipe_of
from multimodal_eval.run.recipe_card import certainty, metrics_of, recipe_card, rows_of, rules_of_recipe
from tools.site.generated.api import ORPHAN

HEAD = """# Benchmarks

`mmeval run NAME --model …` asks a model and gives the published figure with an interval. [Recipes](recipes.md) says how
they are made, and how to add one.

| name | benchmark | rows | rule | exactness |
|---|---|---|---|---|
"""


def benchmark_pages() -> dict[str, str]:
    """The pages by path."""
    rows, pages = [], {}
    for name, file in recipe_names().items():
        benchmark = recipe_of(file)
        chosen = rules_of_recipe(benchmark)
        rules = ", ".join(f"`{metric}` {chosen.get(metric, '')}".strip() for metric in metrics_of(benchmark)[:1])
        title, sure = benchmark.task.title or name, certainty(benchmark.task.exactness)
        rows.append(f"| [`{name}`](benchmarks/{name}.md) | {title} | {rows_of(benchmark)} | {rules} | {sure} |\n")
        pages[f"benchmarks/{name}.md"] = ORPHAN + recipe_card(name)
    return {"benchmarks.md": HEAD + "".join(rows), **pages}
