"""Emulate the Durable triggers and client: the protocol of azure-functions-durable 1.7, with state in SQLite.

`task_hub.TaskHub` is the only entry. The modules name their sources: the Durable extension (2.13 to 3.x) and
DurableTask.Core.
"""
