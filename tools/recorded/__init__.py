"""What the program does now, recorded: commands with what they print and the files they write.

    python -m tools.recorded write [NAME …]     record the commands of `cases.py` in tests/recorded
    python -m tools.recorded check [NAME …]     run them again and show what differs
    python -m tools.recorded damage [NAME …]    damage every file that a run has or depends on, and run it again
    python -m tools.recorded kill [KILLS]       kill runs at random moments, continue them, and compare

A change that must not change results leaves all records as they are.
"""
