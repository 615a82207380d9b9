"""Contests: one package each, and one road that scores them all.

A contest's package gives

    samples            its files as samples; whatever is wrong with them is noted in `Problems`
    configuration      gold data and settings, as an object with the shape of `protocol.Contest`
    submission check   `prepare` refuses a submission with all of its problems before anything is scored
    report sections    a typed record of what a finished run says, derived from the run folder alone

and no scoring of its own: `Prepared.score` makes a run like any other. `submissions` scores many of them.
"""
