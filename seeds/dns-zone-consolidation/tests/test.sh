#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
exec python3 -I -B /tests/run_checks.py
