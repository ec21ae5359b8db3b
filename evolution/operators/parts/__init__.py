"""What operators put into bundles: scripts whose capital-letter constants the operator fills in.

Each is a complete script of its own, for any Python from 3.9 on, standard library only.
"""
