"""`python -m multimodal_eval`: the same as `mmeval`."""

from multimodal_eval.cli.main import run_process

run_process()
