"""Merge rows of the same key into one. Pure kernels on Arrow and NumPy, no I/O."""
