"""The charts of a report as coordinates: a few aggregated values per chart, no values of single samples.

Templates draw them as SVG with coordinates in percent, so that a chart fits any width, prints, and needs no script.
"""
