#!/bin/bash
# Finds password guessing and break-ins in the hosts' authentication logs.
set -euo pipefail

mkdir -p /app/out
python3 -B "$(dirname "$0")/report.py" /app/data /app/out
