"""Shared tasks on a platform: the reference file, submissions of strangers, and their scores.

`reference` writes and reads one file with the rules and the samples; `answers` reads a submission; `judging` scores it.
The packages of the platforms, `codabench` and `evalai`, write what a platform needs around these.
"""
