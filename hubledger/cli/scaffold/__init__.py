"""The scaffold of a room: fields from a sample file or from flags, and the files that follow from them."""
