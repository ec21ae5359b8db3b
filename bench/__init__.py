"""Benchmarks and fault injection: one file, one question, one printed table."""
