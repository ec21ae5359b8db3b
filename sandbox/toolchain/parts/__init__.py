"""What the toolchain puts into a sandbox: its programs, as they are."""
