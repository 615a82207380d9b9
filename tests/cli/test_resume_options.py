"""`mmeval score --resume` refuses settings, and names them as on the command line."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from multimodal_eval.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--no-lint"], "--no-lint"),
        (["--fetch"], "--fetch"),
        (["--map", "generated_answer=pred"], "--map"),
        (["--option", "cider.df=corpus"], "--option"),
        (["-o", "elsewhere"], "--output"),
        (["--metrics", "cider"], "--metrics"),
        (["--seed", "0"], "--seed"),
        (["--allow-outside-images"], "--allow-outside-images"),
    ],
)
def test_a_setting_is_refused_by_its_flag(arguments, flag):
    result = CliRunner().invoke(cli, ["score", "--resume", "run", *arguments])
    assert result.exit_code == 2
    assert f"with the settings it was started with and does not accept {flag}\n" in result.output
