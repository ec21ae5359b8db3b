#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec python3 -I -B /tests/run_checks.py
