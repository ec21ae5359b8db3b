"""The processes that hold sandboxes: a small fork server and one warden per sandbox.

Runs as its own isolated interpreter (`python -I -S`), imports little, and after a sandbox is
entered opens nothing of the host any more.
"""
