"""Running untrusted bundles: many times, fast, saying exactly what happened."""
