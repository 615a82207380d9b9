"""Shared tasks on a platform: the reference file, submissions of strangers, and their scores.

`task` makes the rules and the samples, `submitted_answers` reads a submission, and `judging` scores it against the
reference file, which holds both.
The packages of the platforms, `codabench` and `evalai`, write what a platform needs around these.
"""
