"""Contests: one package each, all scored in the same way.

A contest's package provides

    samples            its files as samples; problems in them are collected in `Problems`
    configuration      gold data and settings, as an object that implements `submissions.Contest`
    submission check   `prepare` refuses a submission with all of its problems before anything is scored
    report sections    a typed record of the results of a finished run, derived from the run folder alone

and no scoring code: `Prepared.score` produces an ordinary run. `submissions` scores many submissions.
"""
