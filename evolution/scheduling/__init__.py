"""Which parent comes next. Pure functions of a lineage's own results."""

from evolution.scheduling.parents import choose_parent

__all__ = ["choose_parent"]
