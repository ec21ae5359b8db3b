"""The multi-agent harness over real HTTP: a local model server, and what has to hold with it."""
