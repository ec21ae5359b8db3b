"""Every write: verb_noun functions, one module per aggregate."""
