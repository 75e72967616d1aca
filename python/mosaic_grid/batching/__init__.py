"""A loop that launches a kernel for one element of a batch after the other, as one launch."""
