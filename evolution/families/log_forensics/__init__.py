"""Log forensics: break-ins by password guessing, to be found in the logs of several hosts."""
