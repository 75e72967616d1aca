"""Finding the dimensions of a kernel's grid that can be called parallel, on proof only."""
