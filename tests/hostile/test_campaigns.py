"""Every campaign with a fixed seed: a third of its cases, or all with MMEVAL_HOSTILE_EVERY, as in `.ci/long hostile`.

`python -m tests.hostile --minutes 10` tries more.
"""

from __future__ import annotations

import pytest

from tests.hostile.campaign import EVERY, all_campaigns
from tests.hostile.runner import run_campaign

SEED = 1
SHARE = 1 if EVERY else 3


@pytest.mark.slow
@pytest.mark.parametrize("name", all_campaigns())
def test_no_case_is_a_fault(name, tmp_path):
    campaign = all_campaigns()[name]
    cases = -(-campaign.cases // SHARE)
    tally = run_campaign(campaign, SEED, cases=cases, keep=tmp_path, most_faults=5)
    assert not tally.faults, "\n\n".join(f"case {fault.case}:\n{fault.text}" for fault in tally.faults)
    assert tally.cases == cases
