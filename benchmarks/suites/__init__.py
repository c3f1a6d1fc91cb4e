"""Suites of others, played on Toolcrib: `python -m benchmarks.suites` prepares their environments and runs them.

Each suite has tools with a state, tasks with the calls that solve them, and a judge. Its tools become tools of a crib,
a scripted model makes the calls through an agent, and the judge of the suite looks at the state: once after the run,
its replay on the journal included, and once after the recorded answers have been given again on a fresh state.

A suite's packages are in an environment of its own, made from `NAME.txt`; `NAME_suite.py` runs there.
"""
