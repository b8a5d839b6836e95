"""Rows of the same key become one. Pure kernels on Arrow and NumPy, no I/O."""
