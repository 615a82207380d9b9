"""Every campaign with a fixed seed and number of cases. `python -m tests.hostile --minutes 10` tries more."""

from __future__ import annotations

import pytest

from tests.hostile.campaign import all_campaigns
from tests.hostile.runner import run_campaign

SEED = 1


@pytest.mark.slow
@pytest.mark.parametrize("name", all_campaigns())
def test_no_case_is_a_fault(name, tmp_path):
    campaign = all_campaigns()[name]
    tally = run_campaign(campaign, SEED, cases=campaign.cases, keep=tmp_path, most_faults=5)
    assert not tally.faults, "\n\n".join(f"case {fault.case}:\n{fault.text}" for fault in tally.faults)
    assert tally.cases == campaign.cases
