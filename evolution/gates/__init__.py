"""The gates: one module per question that an environment must answer before it is accepted."""
