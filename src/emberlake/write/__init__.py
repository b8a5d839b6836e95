"""Layer write."""
