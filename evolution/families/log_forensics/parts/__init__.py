"""The scripts that this family puts into its environments."""
