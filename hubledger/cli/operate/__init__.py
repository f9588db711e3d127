"""The operator's commands: one module a group. Each talks to an app over its HTTP API, and to nothing else."""
