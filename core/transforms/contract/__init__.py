"""The contract of a transform module: its faults are found all at once, each with its file and line.

The form is checked whenever a transform is loaded. Purity is read from the source, which takes longer, so it is checked
only on request and before a run: `python -m core.store.check`, the local run, and the trial start before a deployment.
"""
