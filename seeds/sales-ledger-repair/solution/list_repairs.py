"""Usage: list_repairs.py FOLDER NAME… > repairs.json

Each file FOLDER/NAME holds one identifier a line, in any order, repeated or not.
"""

import json
import sys
from pathlib import Path

folder, *names = sys.argv[1:]
repairs = {name: sorted(set(Path(folder, name).read_text().split())) for name in names}
print(json.dumps(repairs, indent=2))
