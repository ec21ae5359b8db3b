"""What people type and choose, checked."""
