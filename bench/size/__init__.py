"""The size of the story: an hour of it, the price of each safety feature, and how the cost of a batch grows."""
