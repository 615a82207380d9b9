"""Attack for a while: `python -m tests.hostile --minutes 10`.

Prints one line per campaign with its counts, and for each fault the seed and the folder with its files. The exit
code is 1 if there is a fault. `--only NAME --seed S --case N` repeats one case.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.hostile.campaign import Campaign, all_campaigns
from tests.hostile.runner import Tally, run_campaign


def main() -> None:
    campaigns = all_campaigns()
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, help="how long in total; default: the cases of `.ci/long hostile`")
    parser.add_argument("--cases", type=int, help="how many cases of each campaign, instead of --minutes")
    parser.add_argument("--only", action="append", metavar="NAME", choices=campaigns, help=", ".join(campaigns))
    parser.add_argument("--seed", type=int, help="the seed of the cases; default: the time")
    parser.add_argument("--case", type=int, help="try only the case with this number")
    parser.add_argument("--faults", type=int, default=20, help="stop a campaign after this many faults (20)")
    parser.add_argument("--keep", type=Path, default=Path("hostile-faults"), help="where the files of faults are kept")
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    chosen = [campaigns[name] for name in arguments.only or campaigns]
    seconds = None if arguments.minutes is None else arguments.minutes * 60 / len(chosen)
    tallies = [_run(campaign, seed, seconds, arguments) for campaign in chosen]
    cases, faults = sum(tally.cases for tally in tallies), sum(len(tally.faults) for tally in tallies)
    print(f"total: {cases:,} cases, {faults} faults, seed {seed}")
    sys.exit(1 if faults else 0)


def _run(campaign: Campaign, seed: int, seconds: float | None, arguments: argparse.Namespace) -> Tally:
    cases = None if seconds is not None else arguments.cases or campaign.cases
    if arguments.case is not None:
        cases = 1
    tally = run_campaign(
        campaign,
        seed,
        cases=cases,
        seconds=seconds,
        first=arguments.case or 0,
        keep=arguments.keep,
        most_faults=arguments.faults,
    )
    print(tally, flush=True)
    for fault in tally.faults:
        print(f"  case {fault.case}: {fault.headline}\n    {fault.folder}", flush=True)
    return tally


if __name__ == "__main__":
    main()
