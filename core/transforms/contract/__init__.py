"""The contract of a transform module: its faults are found all at once, each with its file and line.

The form is checked whenever a transform is loaded. Every aggregate of its rows is checked too on request and before a
run: `python -m core.store.check`, the local run, and the trial start before a deployment.
"""
