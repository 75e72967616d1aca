"""Static variants of kernels whose grid is dynamic, and the choice between them at run time."""
