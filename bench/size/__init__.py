"""The size of the story: an hour of it, and how the cost of a batch grows."""
