"""Calls of `mmeval leaderboard` for its tests."""

from __future__ import annotations

import json

from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import MultimodalEvalError


def board(*arguments, code=0):
    done = CliRunner().invoke(
        cli, ["leaderboard", *arguments, "--format", "json", "--workers", "1"], catch_exceptions=False
    )
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def refused(*arguments, code=1):
    """The message of the command's error, or of wrong usage."""
    done = CliRunner().invoke(cli, ["leaderboard", *arguments, "--workers", "1"])
    error = done.exception
    if isinstance(error, MultimodalEvalError):
        assert error.exit_code == code
        return str(error)
    assert done.exit_code == code == 2, (done.output, error)
    return done.output


def ranks(result):
    return [(row["name"], row["rank"]) for row in result["standings"]]
