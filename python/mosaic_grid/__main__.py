"""`python -m mosaic_grid` is the tool."""

from __future__ import annotations

import sys

from mosaic_grid.opt import main

if __name__ == "__main__":
    sys.exit(main())
