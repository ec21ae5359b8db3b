"""Families: parametric generators of whole environments."""
