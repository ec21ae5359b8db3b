"""Runs the mended script on layouts of its own, and compares the restore drill."""

import ctypes
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile

OUT = "/app/out"
SCRIPT = OUT + "/backup.sh"
NOBODY = 65534
LIMIT_BYTES = 1_000_000
STAMP = "20260507T0130"
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
HARD_NAMES = {
    "plain.txt": "a",
    "two  blanks.txt": "bb",
    " leading and trailing ": "ccc",
    "-rf": "dddd",
    "*": "e",
    "[ab]?.txt": "f",
    "a.txt": "not to be matched by the pattern above",
    "tab\there": "g",
    "line\nbreak": "h",
    "q'uo\"te$HOME`id`\\n": "i",
    "gr\u00fc\u00dfe.txt": "j",
    ".hidden/.file": "k",
    "deep er/down here/x y.txt": "l",
    "not.tmp.txt": "m",
    "skipped.tmp": "n",
    "deep er/skipped too.tmp": "o",
}

# Whatever the script leaves running becomes our child, so that it can be ended.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def read_output(name):
    """The text of an output file."""
    path = os.path.join(OUT, name)
    assert os.path.isfile(path) and not os.path.islink(path), path + " is not there"
    assert os.path.getsize(path) <= LIMIT_BYTES, path + " is far too large"
    with open(path, encoding="utf-8") as file:
        return file.read()


def expected(name):
    """What an output file has to hold."""
    with open("/tests/" + name, encoding="utf-8") as file:
        return file.read().splitlines()


def drill():
    """The drill's outputs and what they should be, read before any delivered code runs."""
    found = {}
    for name in ("run.log", "store.txt", "restored.tsv"):
        try:
            found[name] = read_output(name).splitlines(), expected(name)
        except (AssertionError, OSError, UnicodeDecodeError) as error:
            found[name] = error
    return found


DRILL = drill()


def drilled(name):
    """Lines of one of the drill's outputs, and what they should be."""
    if isinstance(DRILL[name], Exception):
        raise DRILL[name]
    return DRILL[name]


def end_children():
    """Kill every process that the script has left behind."""
    while True:
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/" + entry + "/stat", encoding="latin-1") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                if parent == os.getpid():
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def has_nobody():
    """Whether there is anybody but root here: a sandbox of an ordinary user may hold root alone."""
    with open("/proc/self/uid_map", encoding="ascii") as users:
        return any(int(line.split()[0]) + int(line.split()[2]) > NOBODY for line in users)


def let_others_read():
    """Let everybody run the script whom its owner lets run it, whatever the solver's umask was."""
    for path in (OUT, SCRIPT):
        mode = os.stat(path).st_mode
        if mode & 0o100:
            os.chmod(path, mode | 0o555)


def run(*arguments, folder):
    """Run the script as nobody, who cannot end its judges; status, lines of output, usage shown.

    Where only root exists, it runs as root.
    """
    read_output("backup.sh")
    let_others_read()
    try:
        done = subprocess.run(
            [SCRIPT, *arguments],
            **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if has_nobody() else {}),
            cwd=folder,
            env=ENV,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=20,
        )
    except PermissionError:
        raise AssertionError("backup.sh is not executable") from None
    except OSError:
        raise AssertionError("backup.sh cannot be run: is its first line right?") from None
    finally:
        end_children()
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return done.returncode, lines, b"usage" in done.stderr.lower()


def write(path, text=""):
    """Write a file with its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def members(archive):
    """Paths and contents of an archive."""
    assert os.path.isfile(archive), "no archive " + os.path.basename(archive)
    with tarfile.open(archive) as tar:
        entries = [entry for entry in tar if entry.isfile()]
        names = [os.path.normpath(entry.name) for entry in entries]
        assert len(set(names)) == len(names), "a file is in the archive twice"
        contents = (tar.extractfile(entry).read().decode() for entry in entries)
        return dict(zip(names, contents))


class Layout:
    """A folder with a job list and a store, gone after use."""

    def __enter__(self):
        self.root = tempfile.mkdtemp()
        self.store = self.root + "/the store"
        os.mkdir(self.store)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def jobs(self, *lines):
        """Write the job list and give all to nobody; `{}` in a line is the layout's root."""
        text = "".join(line.replace("{}", self.root) + "\n" for line in lines)
        write(self.root + "/jobs list.tsv", text)
        if not has_nobody():
            return
        os.chown(self.root, NOBODY, NOBODY)
        for folder, folders, files in os.walk(self.root):
            for name in folders + files:
                os.chown(os.path.join(folder, name), NOBODY, NOBODY)

    def backup(self):
        """Run the script on the layout."""
        return run(self.root + "/jobs list.tsv", self.store, STAMP, folder=self.root)[:2]

    def archive(self, job, stamp=STAMP):
        """The path of one of a job's archives."""
        return self.store + "/" + job + "/" + job + "-" + stamp + ".tar.gz"

    def listing(self, job):
        """The names in a job's part of the store."""
        return sorted(os.listdir(self.store + "/" + job))


def check_every_file_name_gets_into_the_archive():
    with Layout() as layout:
        for name, text in HARD_NAMES.items():
            write(layout.root + "/my data/" + name, text)
        os.mkdir(layout.root + "/nothing")
        layout.jobs("hard\t2\t{}/my data", "empty\t2\t{}/nothing")
        status, lines = layout.backup()
        found = members(layout.archive("hard"))
        wanted = {name: text for name, text in HARD_NAMES.items() if not name.endswith(".tmp")}
        assert set(found) == set(wanted), "not right in the archive: " + ", ".join(
            sorted(map(repr, set(found) ^ set(wanted)))
        )
        assert found == wanted, "a file in the archive has other content"
        assert members(layout.archive("empty")) == {}, "a folder without files gave members"
        assert lines == ["ok hard 14", "ok empty 0"], "standard output is wrong: " + str(lines)
        assert status == 0, "exit status " + str(status) + " though all went well"


def check_exactly_the_newest_archives_are_kept():
    older = ["20260430T0130", "20260503T2359", "20260504T0000", "20260506T0130"]
    with Layout() as layout:
        write(layout.root + "/d/file", "x")
        jobs = {"one": 1, "three": 3, "nine": 9}
        for job in jobs:
            for stamp in older:
                write(layout.archive(job, stamp))
        strays = ["three-extra-20260101T0000.tar.gz", "three-old.tar.gz", "20260101T0000.tar.gz"]
        strays += ["three-20260101T0000.tar.gz.part", "three-20260101.tar.gz", "note"]
        for stray in strays:
            write(layout.store + "/three/" + stray)
        layout.jobs(*(job + "\t" + str(keep) + "\t{}/d" for job, keep in jobs.items()))
        status, lines = layout.backup()
        wanted = []
        for job, keep in jobs.items():
            gone = older[: max(0, 5 - keep)]
            stamps = older[len(gone) :] + [STAMP]
            kept = sorted([job + "-" + stamp + ".tar.gz" for stamp in stamps])
            kept = sorted(kept + strays) if job == "three" else kept
            assert layout.listing(job) == kept, "keep " + str(keep) + " left " + str(layout.listing(job))
            wanted.append("ok " + job + " 1")
            wanted += ["pruned " + job + "-" + stamp + ".tar.gz" for stamp in gone]
        assert lines == wanted, "standard output is wrong: " + str(lines)
        assert status == 0, "exit status " + str(status) + " though all went well"


def check_a_failed_job_is_reported_and_harms_nothing():
    with Layout() as layout:
        write(layout.root + "/d/file", "x")
        write(layout.store + "/blocked", "a file where the job's part of the store should be")
        for stamp in ("20260504T0130", "20260505T0130"):
            write(layout.archive("gone", stamp))
        layout.jobs(
            "first\t1\t{}/d", "gone\t1\t{}/renamed away", "blocked\t1\t{}/d", "last\t1\t{}/d"
        )
        status, lines = layout.backup()
        assert lines == ["ok first 1", "FAILED gone", "FAILED blocked", "ok last 1"], (
            "standard output is wrong: " + str(lines)
        )
        assert status == 1, "exit status " + str(status) + " though a job failed"
        kept = ["gone-20260504T0130.tar.gz", "gone-20260505T0130.tar.gz"]
        assert layout.listing("gone") == kept, "after a failure the store has " + str(layout.listing("gone"))
        assert members(layout.archive("last")) == {"file": "x"}, "a job after a failed one is wrong"


def check_the_call_is_as_the_runbook_says():
    with Layout() as layout:
        write(layout.root + "/some where/a/file", "x")
        write(layout.root + "/some where/b/other", "y")
        layout.jobs("# comment\t1\t{}/d", "", "aa\t2\tsome where/a", "#bb\t2\tx", "bb\t2\tsome where/b")
        status, lines, _ = run("jobs list.tsv", "the store", STAMP, folder=layout.root)
        assert (status, lines) == (0, ["ok aa 1", "ok bb 1"]), "relative paths: " + str((status, lines))
        assert members(layout.archive("bb")) == {"other": "y"}, "relative paths: wrong archive"
        assert sorted(os.listdir(layout.store)) == ["aa", "bb"], "something else is in the store"
        assert run("jobs list.tsv", folder=layout.root) == (2, [], True), (
            "a wrong call must end with 2 and the usage on standard error"
        )


def check_the_log_of_the_drill():
    found, wanted = drilled("run.log")
    assert found == wanted, "run.log is not what a right run on these jobs prints"


def check_the_store_after_the_drill():
    found, wanted = drilled("store.txt")
    wrong = set(found) ^ set(wanted)
    assert not wrong, "store.txt is wrong about " + ", ".join(sorted(wrong))
    assert found == wanted, "store.txt has a line twice, or is not in order"


def check_the_restored_files():
    found, wanted = drilled("restored.tsv")
    for line in found:
        assert line in wanted, "this line of restored.tsv is wrong: " + line
    assert found == wanted, "restored.tsv lacks a line, has one twice, or is not in order"
