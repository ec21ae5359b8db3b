"""Services that run without a server of their own: PostgreSQL, the broker, the process supervisor.

Nothing here knows what Ratchet stores. Only `database` and `broker` import a framework.
"""
