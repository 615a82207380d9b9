"""Answers from a model: the protocol, prompts, the engine, and the providers."""
