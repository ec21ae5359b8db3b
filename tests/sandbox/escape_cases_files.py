"""Tricks with files that are carried between a sandbox and its owner."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from sandbox.base import Sandbox
from sandbox.contracts import ArtifactSpec, SandboxFile
from sandbox.errors import SandboxError
from tests.sandbox.conformance_bench import (
    MIB,
    Bench,
    content,
    everything,
    host_file,
    out,
    perl,
    sh,
)

_SWAP = """
chdir '/srv'; my ($to, $kind) = @ARGV; fork and exit;
while (1) {
  if ($kind eq 'folder') { rename 'd', 'e'; symlink $to, 'd'; unlink 'd'; rename 'e', 'd' }
  else { rename 'd/f', 'd/g'; symlink "$to/secret", 'd/f'; unlink 'd/f'; rename 'd/g', 'd/f' }
}
"""


def _race(sandbox: Sandbox, seconds: float, action: Callable[[], None]) -> int:
    """Repeat an action while a process of the sandbox works against it; how often it went well."""
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with contextlib.suppress(SandboxError):  # it may fail, it may not be led astray
            action()
            done += 1
    return done


def a_folder_that_becomes_a_link_leads_no_write_astray(bench: Bench) -> None:
    with host_file() as secret, bench.start() as sandbox:
        for to, kind in ((secret.parent, "folder"), (secret.parent, "file"), ("/etc", "folder")):
            sandbox.write_files([SandboxFile("d/f", b"")], "/srv")
            perl(sandbox, _SWAP, str(to), kind)
            files = [SandboxFile("f", b"astray"), SandboxFile("secret", b"astray")]
            _race(sandbox, 0.8, lambda: sandbox.write_files(files, "/srv/d"))  # noqa: B023
            _race(sandbox, 0.4, lambda: sandbox.remove_tree("/srv/d/f"))
            sandbox.kill_all()
            sandbox.remove_tree("/srv")
        assert sh(sandbox, f"ls /etc/secret {secret}").exit_status != 0
        sandbox.write_files([SandboxFile("after", b"fine")], "/srv")
        assert content(sandbox, "/srv") == {"after": b"fine"}


def a_folder_that_becomes_a_link_leads_no_read_astray(bench: Bench) -> None:
    seen: set[bytes] = set()
    with host_file(b"of the host") as secret, bench.start() as sandbox:
        sh(sandbox, f"mkdir -p {secret.parent}; echo inside > /etc/secret")
        for to, kind in ((secret.parent, "folder"), (secret.parent, "file"), ("/etc", "folder")):
            sandbox.write_files([SandboxFile("d/f", b"true"), SandboxFile("d/secret")], "/srv")
            perl(sandbox, _SWAP, str(to), kind)

            def look() -> None:
                for path in ("/srv", "/srv/d/secret", "/srv/d/f"):
                    seen.update(file.data for file in everything(sandbox, path))

            assert _race(sandbox, 0.8, look) > 0
            sandbox.kill_all()
            sandbox.remove_tree("/srv")
    assert seen <= {b"", b"true"}


def hard_links_reach_nothing_new(bench: Bench) -> None:
    with host_file() as secret, bench.start() as sandbox:
        for user in bench.users:
            for target in (str(secret), "/proc/1/mem", "/proc/self/root" + str(secret)):
                assert sh(sandbox, f"ln {target} /tmp/stolen", user=user).exit_status != 0, target
        assert sh(sandbox, "cd /srv; echo x > a; ln a b; cmp a b").exit_status == 0
        sh(sandbox, "ln -f /etc/passwd /srv/b; ln -f /etc/passwd /srv/a")
        sandbox.write_files([SandboxFile("a", b"mine")], "/srv")
        assert out(sandbox, "head -c 5 /etc/passwd") == "root:"
        assert content(sandbox, "/srv")["a"] == b"mine"


_TRICKS = (
    "@LongLink/@LongLink",
    "PaxHeaders/12",
    "30 path=evil\n",
    "..\n/..\\..\\evil",
    "...",
    ".wh.one",
    ".wh..wh..opq",
    "GNUSparseFile.0/x",
    "ustar\x2000",
    "x" * 200 + "/" + "y" * 250,
    "C:\\evil",
    "\u202etxt.exe",
    "\udc80\udcff",
    " ",
    "a ",
    "0" * 99,
    "1" * 100,
    "2" * 101,
    "p/" * 60 + "end",
)


def names_that_archives_trip_over_are_only_names(bench: Bench) -> None:
    files = tuple(SandboxFile(name, f"{n}".encode()) for n, name in enumerate(_TRICKS))
    links = (
        SandboxFile("away", mode=0o777, link="/tmp"),
        SandboxFile("up", mode=0o777, link="../" * 30 + "tmp/evil"),
        SandboxFile("long", mode=0o777, link="t" * 300),
    )
    with bench.start() as one, bench.start() as two:
        one.write_files((*files, *links), "/srv")
        found = everything(one, "/srv")
        assert {f.path[5:]: (f.data, f.link) for f in found} == {
            f.path: (f.data, f.link) for f in (*files, *links)
        }
        two.write_files([SandboxFile(f.path[1:], f.data, f.mode, f.link) for f in found], "/")
        assert everything(two, "/srv") == found
        assert out(two, "ls -A /tmp; ls / | grep -c evil || :") == "0\n"


def a_link_and_a_file_below_it_do_not_meet(bench: Bench) -> None:
    """As an archive would have them: first a link, then a file that goes through it."""
    with host_file() as secret, bench.start() as sandbox:
        for target in (str(secret.parent), "/etc", "..", "/proc/1/root/tmp"):
            sandbox.write_files([SandboxFile("a", mode=0o777, link=target)], "/srv")
            sandbox.write_files([SandboxFile("a/secret", b"through")], "/srv")
            assert content(sandbox, "/srv") == {"a/secret": b"through"}
            with contextlib.suppress(SandboxError):  # no tree can hold these two
                both = [SandboxFile("b", mode=0o777, link=target), SandboxFile("b/secret", b"x")]
                sandbox.write_files(both, "/srv")
            assert out(sandbox, "ls /etc/secret /secret 2>/dev/null || :") == ""
            sandbox.remove_tree("/srv")


def what_is_read_is_bounded_whatever_it_is(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "cd /srv; truncate -s 8E vast 2>/dev/null || truncate -s 1T vast; mkfifo hang")
        sh(sandbox, "ln -s /dev/zero zero; (while :; do head -c 1M /dev/zero >> grows; done) &")
        started = time.monotonic()
        for path in ("/srv", "/proc/self", "/dev", "/sys", "/proc/kcore", "/srv/zero/x"):
            with contextlib.suppress(SandboxError):
                found = sandbox.read_files([ArtifactSpec(path)], cap_bytes=MIB)
                assert sum(len(file.data) for file in found) <= MIB
        assert time.monotonic() - started < 40
        assert out(sandbox, "echo usable") == "usable\n"


def a_planted_tool_does_not_meddle_with_the_machinery(bench: Bench) -> None:
    """What runs in the sandbox on our behalf must not come from what the solver can replace."""
    plant = """
        for $tool (qw(tar cat sh kill find rm mkdir chmod sleep head env ls)) {
          for $d (qw(/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin)) {
            unlink "$d/$tool"; open F, '>', "$d/$tool" or next;
            print F "#!/bin/bash\\necho astray >> /app/called; exit 1\\n"; close F;
            chmod 0755, "$d/$tool"; $n++ } }
        for (qw(/etc/profile /root/.bashrc /etc/bash.bashrc)) {
          open F, '>', $_; print F "echo sourced >> /app/called\\n"; close F }
        print $n;
    """
    with bench.start() as sandbox:
        assert int(perl(sandbox, plant).stdout) >= 12
        with contextlib.suppress(SandboxError):  # said to be broken, not taken for an answer
            sandbox.write_files([SandboxFile("x", b"fine")], "/srv")
            assert content(sandbox, "/srv") == {"x": b"fine"}
            sandbox.remove_tree("/srv/x")
            assert content(sandbox, "/srv") == {}
            sandbox.kill_all()
            assert content(sandbox, "/app").get("called") is None


CASES = (
    a_folder_that_becomes_a_link_leads_no_write_astray,
    a_folder_that_becomes_a_link_leads_no_read_astray,
    hard_links_reach_nothing_new,
    names_that_archives_trip_over_are_only_names,
    a_link_and_a_file_below_it_do_not_meet,
    what_is_read_is_bounded_whatever_it_is,
    a_planted_tool_does_not_meddle_with_the_machinery,
)
