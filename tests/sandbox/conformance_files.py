"""Files between a sandbox and its owner."""

from __future__ import annotations

import hashlib
import os
import time

import pytest

from sandbox.contracts import ArtifactSpec, Limits, SandboxFile
from sandbox.errors import Refused, TooLarge
from tests.sandbox.conformance_bench import MIB, Bench, content, everything, out, perl, sh

_ODD_NAMES = (
    "a b",
    "-rf",
    "new\nline",
    "ü→\U0001f600",
    "'\"`$(id)",
    "back\\slash",
    "*",
    "..x",
    " ",
)
_MAKE_ODD = """
chdir '/srv'; $n = 0;
for (@ARGV, "\\xff\\xfe not utf-8", 'n' x 255) { open F, '>', "./$_" or die; print F $n++; close F }
"""


def odd_names_made_inside_come_out(bench: Bench) -> None:
    names = [*_ODD_NAMES, "\udcff\udcfe not utf-8", "n" * 255]
    with bench.start() as sandbox:
        assert perl(sandbox, _MAKE_ODD, *_ODD_NAMES).exit_status == 0
        found = content(sandbox, "/srv")
        assert found == {name: str(n).encode() for n, name in enumerate(names)}
        for name in names:
            only = everything(sandbox, f"/srv/{name}")
            assert [f.path for f in only] == [f"/srv/{name}"]
            sandbox.remove_tree(f"/srv/{name}")
        assert everything(sandbox, "/srv") == ()


def modes_are_kept_and_programs_run(bench: Bench) -> None:
    script = b"#!/bin/bash\necho ran\n"
    with bench.start() as sandbox:
        files = [SandboxFile("yes", script, 0o755), SandboxFile("no", script, 0o644)]
        sandbox.write_files(files, "/srv")
        assert out(sandbox, "/srv/yes; stat -c %a,%u,%g /srv/yes /srv/no") == (
            "ran\n755,0,0\n644,0,0\n"
        )
        assert sandbox.exec(["/srv/no"], timeout_seconds=20).exit_status == 126
        sh(
            sandbox,
            "cd /srv; rm *; for m in 000 400 640 700 777 4755 1777; do :>$m; chmod $m $m; done",
        )
        modes = {f.path[5:]: f.mode for f in everything(sandbox, "/srv")}
        assert modes == {
            m: int(m, 8) & 0o777 for m in ["000", "400", "640", "700", "777", "4755", "1777"]
        }


def links_come_back_as_links(bench: Bench) -> None:
    links = {
        *(("dangling", "nowhere"), ("absolute", "/etc/passwd"), ("loop", "loop")),
        *(("folder", "/etc"), ("outside", "../../../../etc/hostname"), ("odd", "a\n->ü")),
    }
    with bench.start() as sandbox:
        for name, target in links:
            sandbox.exec(["ln", "-s", target, f"/srv/{name}"], timeout_seconds=20)
        found = everything(sandbox, "/srv")
        assert {(f.path[5:], f.link) for f in found} == links
        assert {f.data for f in found} == {b""}
        assert [f.link for f in everything(sandbox, "/srv/folder")] == ["/etc"]
        assert everything(sandbox, "/srv/folder/passwd") == ()


def links_are_not_followed(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "echo old > /etc/secret; ln -s /etc /app/down; ln -s /etc/secret /app/file")
        sh(sandbox, "ln /etc/secret /app/hard; mkfifo /app/pipe; ln -s /app/loop /app/loop")
        sandbox.write_files([SandboxFile("secret", b"new")], "/app/down")
        sandbox.write_files(
            [SandboxFile(n, b"new") for n in ("file", "hard", "pipe", "loop")], "/app"
        )
        assert out(sandbox, "cat /etc/secret; cat /app/down/secret") == "old\nnew"
        assert out(sandbox, "cat /app/file /app/hard /app/pipe /app/loop") == "new" * 4
        sh(sandbox, "rm -rf /app/down; ln -s /etc /app/down")
        sandbox.remove_tree("/app/down/secret")
        sandbox.remove_tree("/app/down")
        assert out(sandbox, "cat /etc/secret; ls /app") == "old\ndata\nfile\nhard\nloop\npipe\n"


def hard_links_come_back_as_files_of_their_own(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "cd /srv; mkdir z; echo same > b; ln b a; ln b z/c; chmod 640 b")
        found = {f.path: (f.data, f.mode, f.link) for f in everything(sandbox, "/srv")}
        assert found == {f"/srv/{n}": (b"same\n", 0o640, None) for n in ("a", "b", "z/c")}
        sandbox.write_files([SandboxFile("a", b"other")], "/srv")
        assert content(sandbox, "/srv") == {"a": b"other", "b": b"same\n", "z/c": b"same\n"}


def what_is_no_file_is_left_out(bench: Bench) -> None:
    special = (
        "cd /srv; mkfifo pipe; echo x > file; mkdir empty; mkfifo -m 000 shut;"
        " perl -MSocket -e 'socket S, PF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un \"sock\" or die'"
    )
    with bench.start() as sandbox:
        assert sh(sandbox, special).exit_status == 0
        started = time.monotonic()
        assert content(sandbox, "/srv") == {"file": b"x\n"}
        sources = [ArtifactSpec(f"/srv/{n}") for n in ("pipe", "sock", "empty")]
        sources += [ArtifactSpec("/dev/zero"), ArtifactSpec("/dev/null")]
        assert sandbox.read_files(sources, cap_bytes=MIB) == ()
        assert time.monotonic() - started < 15


def large_files_go_both_ways(bench: Bench) -> None:
    data = os.urandom(MIB) * 32
    with bench.start(Limits(disk_bytes=256 * MIB)) as sandbox:
        sandbox.write_files([SandboxFile("large", data)], "/srv")
        digest = hashlib.sha256(data).hexdigest()
        assert out(sandbox, "sha256sum < /srv/large", 60).split()[0] == digest
        assert content(sandbox, "/srv")["large"] == data


def sparse_files_count_as_long_as_they_look(bench: Bench) -> None:
    with bench.start(Limits(disk_bytes=128 * MIB)) as sandbox:
        sh(sandbox, "cd /srv; truncate -s 64M holes; echo end >> holes")
        (file,) = sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=65 * MIB)
        assert (len(file.data), file.data[-4:]) == (64 * MIB + 4, b"end\n")
        assert file.data.count(0) == 64 * MIB
        with pytest.raises(TooLarge):
            sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=60 * MIB)
        started = time.monotonic()
        for length in ("100M", "1T"):
            if sh(sandbox, f"truncate -s {length} /srv/holes").exit_status == 0:
                with pytest.raises(TooLarge):
                    everything(sandbox, "/srv")
        assert time.monotonic() - started < 30


def empty_files_and_folders_are_what_they_are(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("empty")], "/srv")
        sandbox.write_files([], "/srv/folder/below")
        assert out(sandbox, "stat -c %F,%a,%s /srv/empty; stat -c %F,%a /srv/folder/below") == (
            "regular empty file,644,0\ndirectory,755\n"
        )
        assert content(sandbox, "/srv") == {"empty": b""}


def deep_trees_are_carried_and_bottomless_ones_refused(bench: Bench) -> None:
    deep = "for (1..$ARGV[0]) { mkdir 'd'; chdir 'd' } open F, '>', 'f'; print F 'deep'"
    with bench.start() as sandbox:
        perl(sandbox, deep, "120", workdir="/srv")
        (file,) = everything(sandbox, "/srv")
        assert (file.path, file.data) == (f"/srv{'/d' * 120}/f", b"deep")
        sandbox.remove_tree("/srv/d")
        sandbox.write_files([SandboxFile(file.path[5:], b"again")], "/srv")
        assert content(sandbox, "/srv") == {file.path[5:]: b"again"}
        perl(sandbox, deep, "2000", workdir="/srv")
        with pytest.raises(TooLarge, match="deep"):
            everything(sandbox, "/srv")
        sandbox.remove_tree("/srv/d")
        assert out(sandbox, "ls /srv") == ""


def five_thousand_files_go_both_ways(bench: Bench) -> None:
    make = "for $n (1..5000) { mkdir $n % 50; open F, '>', ($n % 50).\"/$n\"; print F $n; close F }"
    with bench.start() as sandbox:
        perl(sandbox, make, workdir="/srv", seconds=60)
        found = everything(sandbox, "/srv")
        assert len(found) == 5000
        assert all(f.data == f.path.rsplit("/", 1)[-1].encode() for f in found)
        sandbox.remove_tree("/srv")
        moved = [SandboxFile(f.path[5:], f.data, 0o600) for f in found]
        sandbox.write_files(moved, "/app/moved")
        look = "find moved -type f -perm 600 | wc -l; cat moved/7/4957"
        assert out(sandbox, look, 60) == "5000\n4957"
        assert everything(sandbox, "/srv") == ()


def what_vanishes_or_grows_while_it_is_read_is_no_fault(bench: Bench) -> None:
    churn = (
        "cd /srv; (while :; do for n in 1 2 3 4 5 6 7 8; do echo $n > f$n; mkdir -p d$n;"
        " echo > d$n/x; done; rm -rf f* d*; done) & (while :; do echo more >> /app/grows; done) &"
    )
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("kept", b"kept")], "/srv")
        sh(sandbox, churn)
        for _ in range(15):
            found = content(sandbox, "/srv")
            assert found["kept"] == b"kept"
            everything(sandbox, "/app/grows")


def a_path_that_is_not_plain_is_refused(bench: Bench) -> None:
    with bench.start() as sandbox:
        for name in ("../x", "a/../../x", "a\0b", ".."):
            with pytest.raises(Refused, match="plain path"):
                sandbox.write_files([SandboxFile(name, b"")], "/app")
        with pytest.raises(Refused):
            sandbox.remove_tree("/")
        assert out(sandbox, "ls / | grep -c '^x$' || true") == "0\n"


def every_put_file_has_the_same_time(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("a", b"1"), SandboxFile("b/c", b"2")], "/srv")
        times = out(sandbox, "stat -c %Y /srv/a /srv/b/c").split()
    assert len(set(times)) == 1
    assert int(times[0]) < time.time() - 86_400


CHECKS = (
    odd_names_made_inside_come_out,
    modes_are_kept_and_programs_run,
    links_come_back_as_links,
    links_are_not_followed,
    hard_links_come_back_as_files_of_their_own,
    what_is_no_file_is_left_out,
    large_files_go_both_ways,
    sparse_files_count_as_long_as_they_look,
    empty_files_and_folders_are_what_they_are,
    deep_trees_are_carried_and_bottomless_ones_refused,
    five_thousand_files_go_both_ways,
    what_vanishes_or_grows_while_it_is_read_is_no_fault,
    a_path_that_is_not_plain_is_refused,
    every_put_file_has_the_same_time,
)
