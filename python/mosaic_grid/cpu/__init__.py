"""The CPU lowering: a launch of a Mosaic kernel becomes a function of plain StableHLO.

Memory is explicit state. A *root* is what a kernel is given or allocates: an operand, a window's buffer, scratch,
semaphores. Its contents are one tensor, threaded through the region ops; a *view* is index arithmetic on a root. Rules
(`rules/`, a table by dialect) translate one op each and know nothing of grids; `grid.py` runs the steps.
"""
