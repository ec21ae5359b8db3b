"""Which parent comes next. Pure functions of a lineage's own results."""

from evolution.scheduling.parents import Node, choose_parent, choose_parents

__all__ = ["Node", "choose_parent", "choose_parents"]
