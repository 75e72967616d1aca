"""Running a lowered TPU program on the CPU: `mosaic-run` and `mosaic_grid.run`.

A program is opened and unpacked, its launches are lowered to StableHLO (`mosaic_grid.cpu`), XLA compiles it, and it
runs on arrays that are given, read from files or made from a seed. JAX isn't needed for any of it.
"""
