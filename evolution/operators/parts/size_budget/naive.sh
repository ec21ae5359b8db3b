#!/bin/bash
# The plain way to an archive that is the same each time.
set -euo pipefail
mkdir -p @FOLDER@
cd /
for path in @FILES@; do find "${path#/}" -type f; done | LC_ALL=C sort -u |
    tar -c @FLAG@--format=ustar --owner=0 --group=0 --numeric-owner --mode=0644 --mtime=@0 -T - -f @ARCHIVE@
