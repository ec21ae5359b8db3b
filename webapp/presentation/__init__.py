"""Turning stored values into what templates show: pure functions, no queries."""
