"""How hard an environment is: without a solver (policy-free), and from trials (posterior)."""
