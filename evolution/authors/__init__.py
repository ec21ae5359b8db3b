"""Who plays the roles: an author without a model, and authors with one."""
