"""Benchmarks by name: a folder for each, with its recipe and what checks it. Published as data of the package."""
