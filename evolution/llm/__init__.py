"""Language models: where they are, what they cost, and the one way every request goes."""
