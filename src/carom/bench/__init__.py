"""Benchmarks: one module per table, the format of their results, and the README's tables made from these."""
