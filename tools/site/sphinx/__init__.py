"""The Sphinx project of the site: its settings, its formulas, its look."""
