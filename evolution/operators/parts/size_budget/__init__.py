"""Scripts of one operator; see the package above."""
