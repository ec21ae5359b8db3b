"""Environments that are known to be sound, and the same with one defect put in; made by code."""
