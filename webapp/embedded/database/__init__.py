"""Django's PostgreSQL back-end, on the embedded server. `ENGINE = "webapp.embedded.database"`."""
