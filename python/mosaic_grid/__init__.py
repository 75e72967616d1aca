"""mosaic-grid: resolves the grids of lowered Pallas TPU kernels and shares them between the cores.

Importing the package imports nothing else, so that each tool pays only for what it uses.
"""

__version__ = "0.1.0"
