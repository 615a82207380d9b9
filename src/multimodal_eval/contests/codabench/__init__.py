"""Shared tasks on Codabench: the bundle that an organiser uploads, and its scoring program."""
