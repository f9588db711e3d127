"""The Durable triggers and client: the out-of-process protocol of azure-functions-durable 1.7, with state in SQLite.

`task_hub.TaskHub` is the way in; what the protocol looks like stays inside. Sources named in the modules are those of
the Durable extension (2.13 to 3.x) and of DurableTask.Core.
"""
