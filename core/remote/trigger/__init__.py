"""The door to the storage of the Functions host: the trigger's own checkpoints."""
