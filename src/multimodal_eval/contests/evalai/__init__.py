"""Shared tasks on EvalAI: the archive that an organiser uploads, and its evaluation script."""
