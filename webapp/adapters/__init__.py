"""The engine's ports, implemented on the database."""
