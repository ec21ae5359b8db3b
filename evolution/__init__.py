"""The evolution engine: a functional core. No clock, no global random state, no I/O of its own."""
