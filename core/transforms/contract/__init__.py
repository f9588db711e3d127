"""The contract of a transform module: its faults are found all at once, each with its file and line.

The form is checked whenever a transform is loaded. Purity is read from the source, so it is checked only where somebody
waits for the answer: `python -m core.store.check`, the local run, and the trial start before a deployment.
"""
