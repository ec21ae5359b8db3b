"""Concrete back-ends. Only the composition root and the tests name them."""
