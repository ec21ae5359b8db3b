"""Operators: the procedural author's ways to make an environment harder."""
