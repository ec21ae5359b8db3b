"""Held-out defects of what tests and solution take for granted: names, machine, order, times."""

from __future__ import annotations

from bench.corpus.defects import ONE_FILE, Defect
from bench.corpus.held_out_ways import told_otherwise, way

FLAT = (
    *("fixed_width", "contents", "printed_report"),
    *("latest_contacts", "error_bursts", "wide_table", "binary_records"),
)
"""Styles with one input, which lies in `/app/data` itself."""

OTHER_PATH = (
    told_otherwise(
        "the instruction names another folder than the tests read",
        lambda path: path.replace("/app/out/", "/app/output/"),
        styles=ONE_FILE,
    ),
    told_otherwise(
        "the instruction gives the result another name than the tests read",
        lambda path: f"/app/out/result.{path.rpartition('.')[2]}",
        styles=ONE_FILE,
    ),
    told_otherwise(
        "the instruction gives the result another suffix than the tests read",
        lambda path: f"{path.rpartition('.')[0]}.dat",
        styles=ONE_FILE,
    ),
    told_otherwise(
        "the instruction writes the result's name in capitals, the tests do not",
        lambda path: f"/app/out/{path.rpartition('/')[2].capitalize()}",
        styles=ONE_FILE,
    ),
    told_otherwise(
        "the instruction puts the result in /app itself, the tests read it in a folder of it",
        lambda path: path.replace("/app/out/", "/app/"),
        styles=ONE_FILE,
    ),
)

MACHINE_BOUND = (
    way(
        "the solution has names for four workers, and ends where there are more CPUs",
        before="""
workers=(north east south west)
for at in $(seq 0 $(($(nproc) - 1))); do
    echo "worker ${workers[$at]}"
done
""",
    ),
    way(
        "the solution counts in as many equal parts as there are CPUs, and loses the rest",
        told="Also write /app/out/entries.txt: the number of lines of /app/data/entries.txt.",
        data={"entries.txt": "".join(f"entry {n}\n" for n in range(61))},
        outputs={"entries.txt": "61\n"},
        step="""
parts=$(nproc) total=0
size=$((61 / parts))
for at in $(seq 0 $((parts - 1))); do
    lines=$(sed -n "$((at * size + 1)),$(((at + 1) * size))p" /app/data/entries.txt | wc -l)
    total=$((total + lines))
done
echo "$total" > /app/out/entries.txt
""",
    ),
    way(
        "the solution loads a library by a path that only one architecture has",
        before="""
python3 - <<'PY'
import ctypes
print(ctypes.CDLL("/usr/lib/x86_64-linux-gnu/libz.so.1").zlibCompileFlags())
PY
""",
    ),
    way(
        "the tests count the CPUs of the machine that judges, not of the one that solved",
        told="Also write /app/out/workers.txt: how many processors there are.",
        step="nproc > /app/out/workers.txt",
        more="""
def check_workers():
    assert int(open("/app/out/workers.txt").read()) == len(os.sched_getaffinity(0))
""",
    ),
    way(
        "the tests demand a speed that a slower or busier machine does not have",
        more="""
def check_speed():
    import time
    start = time.perf_counter()
    for _ in range(300):
        content("@out")
    assert time.perf_counter() - start < 0.4, "too slow"
""",
    ),
)

UMASK_BOUND = (
    way(
        "the tests demand the mode 644, which nobody asked for and only the umask gives",
        more="""
def check_mode():
    assert os.stat("@out").st_mode & 0o777 == 0o644
""",
    ),
    way(
        "the tests demand the mode 755 of a folder, which only the umask gives",
        told="Also keep a copy of the result in the folder /app/out/kept.",
        is_shared=True,
        agent_user="nobody",
        step="mkdir /app/out/kept && cp @out /app/out/kept/",
        more="""
def check_folder():
    assert os.listdir("/app/out/kept")
    assert oct(os.stat("/app/out/kept").st_mode)[-3:] == "755"
""",
    ),
    way(
        "the tests read the result as another user, which only the umask allows",
        more="""
def check_it_can_be_read():
    os.seteuid(65534)
    try:
        open("@out").close()
    finally:
        os.seteuid(0)
""",
    ),
    way(
        "the mode that the umask gave is part of what is right",
        told="Also write /app/out/modes.txt: the mode of the result in octal.",
        outputs={"modes.txt": "644\n"},
        step="stat -c %a @out > /app/out/modes.txt",
    ),
    way(
        "the solution reads its copy of the input as another user, which only the umask allows",
        before="""
cat @in > /tmp/copy
setpriv --reuid=65534 --clear-groups cat /tmp/copy > /dev/null
""",
    ),
)

_NAMES = "ada ben cleo dora emil finn gerd hans ines jan kai lena"
_WORDS = "delta amber basin cedar ember flint grove haven inlet jetty"
CHANCE_ORDER = (
    way(
        "names go into parts by their hash, and a part may stay empty: it fails once in eight runs",
        told="Also write /app/out/first.txt: the first name of /app/data/names.txt in order.",
        data={"names.txt": _NAMES.replace(" ", "\n") + "\n"},
        outputs={"first.txt": "ada\n"},
        step="""
python3 - <<'PY'
parts = [[], [], [], []]
for name in open("/app/data/names.txt").read().split():
    parts[hash(name) % 4].append(name)
with open("/app/out/first.txt", "w") as target:
    print(min(min(part) for part in parts), file=target)
PY
""",
    ),
    way(
        "the tests want a comma after a word that a set may put last: it fails once in ten runs",
        told="Also write /app/out/words.txt: the words of /app/data/words.txt, each once, in one "
        "line, separated by a comma and a space.",
        data={"words.txt": f"{_WORDS} {_WORDS}\n".replace(" ", "\n")},
        step="""
python3 - <<'PY'
words = set(open("/app/data/words.txt").read().split())
open("/app/out/words.txt", "w").write(", ".join(words) + "\\n")
PY
""",
        more="""
def check_words():
    text = open("/app/out/words.txt").read()
    assert len(text.split(", ")) == 10 and "delta, " in text
""",
    ),
    way(
        "of two files that disagree, the one that the folder happens to list last wins",
        told="Also write /app/out/level.txt: the level that the files of /app/data/conf.d set.",
        data={"conf.d/base.conf": "level=1\n", "conf.d/site.conf": "level=2\n"},
        outputs={"level.txt": "2\n"},
        step="""
ls -U /app/data/conf.d | while read -r name; do cat "/app/data/conf.d/$name"; done |
    tail -n 1 | cut -d = -f 2 > /app/out/level.txt
""",
    ),
    way(
        "the header is taken from the file that find names first; one of them has none",
        told="Also write /app/out/header.txt: the header of the files in /app/data/parts.",
        data={
            f"parts/{name}.csv": "" if name == "jena" else "day,sold\n1,2\n"
            for name in ("aarau", "cork", "espoo", "gent", "imola", "jena")
        },
        outputs={"header.txt": "day,sold\n"},
        step="""
found=$(find /app/data/parts -name '*.csv' | head -n 1)
head -n 1 "$found" > /app/out/header.txt
""",
    ),
    way(
        "the tests take delivered files in the order in which their folder happens to list them",
        told="Also write the files base, local and site in /app/out/parts; each holds its name.",
        is_shared=True,
        agent_user="nobody",
        step="""
mkdir -p /app/out/parts
for name in base local site; do echo "$name" > "/app/out/parts/$name"; done
""",
        more="""
def check_parts():
    names = os.listdir("/app/out/parts")
    for name, wanted in zip(names, ("site", "local", "base")):
        assert open("/app/out/parts/" + name).read().strip() == wanted
    assert len(names) == 3
""",
    ),
)

MTIME_BOUND = (
    way(
        "the tests demand that the result is at most a minute old",
        is_shared=True,
        agent_user="nobody",
        more="""
def check_it_is_new():
    import time
    assert time.time() - os.stat("@out").st_mtime < 60, "stale"
""",
    ),
    way(
        "the input is the newest of two files, whose times a checkout decides",
        told="Of several versions of the input the newest counts.",
        styles=FLAT,
        before="""
newest=$(ls -t @in* | head -n 1)
[ "$newest" = @in ] || cp "$newest" @in
""",
        build=("RUN cd /app/data && for f in *; do head -n 2 $f > $f.1 && touch -r $f $f.1; done",),
    ),
    way(
        "the solution works on inputs of the last day only, which is when the image was built",
        before="""
fresh=$(find @in -mmin -1440)
[ -n "$fresh" ] || { echo "nothing new"; exit 0; }
""",
        build=("RUN find /app/data -type f -exec touch {} +",),
    ),
    way(
        "the solution does nothing where a mark happens to be newer than the input",
        data={"cache/done": ""},
        before="[ /app/data/cache/done -nt @in ] && exit 0",
    ),
    way(
        "the day of the input's last change is part of what is right; a checkout decides it",
        told="Also write /app/out/day.txt: the day (UTC) of the input's last change.",
        outputs={"day.txt": "2024-01-01\n"},
        step="date -u -r @in +%F > /app/out/day.txt",
    ),
)

KINDS: dict[str, tuple[Defect, ...]] = {
    "other_path": OTHER_PATH,
    "machine_bound": MACHINE_BOUND,
    "umask_bound": UMASK_BOUND,
    "chance_order": CHANCE_ORDER,
    "mtime_bound": MTIME_BOUND,
}
