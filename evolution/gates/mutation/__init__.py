"""Mutants: small damages to a solution, or to the state that it leaves, that tests must notice."""
