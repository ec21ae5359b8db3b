"""Images, and what else a sandbox is started with: a network, mounts."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sandbox.contracts import Mount, NetworkMode, NetworkPolicy, SandboxFile
from sandbox.errors import ImageBuildFailed, SandboxError
from tests.sandbox.conformance_bench import DOCKERFILE, Bench, out, perl, sh

_FULL = b"""\
FROM debian:bookworm-slim
ARG WHAT=built
ENV PLACE=/srv/made
WORKDIR $PLACE
COPY data/one.txt data/run.sh ./
COPY data /copy/
COPY ["data/a b", "/spaced/"]
RUN echo $WHAT in $(pwd) > made && chmod 600 made && mkfifo pipe && ln -s made link
USER root
CMD ["false"]
"""


def a_dockerfile_does_what_it_says(bench: Bench) -> None:
    spec = bench.spec(
        _FULL, SandboxFile("data/a b", b"blank"), SandboxFile("data/l", link="one.txt")
    )
    with bench.start(spec=spec) as sandbox:
        assert out(sandbox, "pwd; cat made link; ls; stat -c %a made run.sh one.txt") == (
            "/srv/made\nbuilt in /srv/made\nbuilt in /srv/made\n"
            "link\nmade\none.txt\npipe\nrun.sh\n600\n755\n644\n"
        )
        assert out(sandbox, "cd /copy; echo *; readlink l; cat '/spaced/a b'; echo $PLACE") == (
            "a b l one.txt run.sh\none.txt\nblank/srv/made\n"
        )


def a_spec_may_overrule_its_dockerfile(bench: Bench) -> None:
    spec = bench.spec(DOCKERFILE + b"ENV A=of-the-file B=kept\n")
    spec = replace(spec, workdir="/srv", env=(("A", "of the spec"), ("C", "x=y")))
    assert bench.backend.prepare(spec).workdir == "/srv"
    with bench.start(spec=spec) as sandbox:
        assert out(sandbox, "pwd; echo $A,$B,$C") == "/srv\nof the spec,kept,x=y\n"


def a_step_that_fails_shows_its_last_words(bench: Bench) -> None:
    spec = bench.spec(DOCKERFILE + b"RUN echo the-reason-why; echo and-more >&2; exit 3\n")
    for _ in range(2):  # a failure is not kept as if it were an image
        with pytest.raises(ImageBuildFailed) as failed:
            bench.backend.prepare(spec)
        assert "the-reason-why" in failed.value.log
        assert "and-more" in failed.value.log
        assert "\n" not in str(failed.value)


def a_source_that_is_missing_is_named(bench: Bench) -> None:
    with pytest.raises(ImageBuildFailed) as failed:
        bench.backend.prepare(bench.spec(DOCKERFILE + b"COPY not-there /x\n"))
    assert "not-there" in f"{failed.value} {failed.value.log}"


def a_build_that_takes_too_long_is_ended(bench: Bench) -> None:
    spec = replace(bench.spec(DOCKERFILE + b"RUN sleep 61\n"), build_timeout_seconds=2.0)
    started = time.monotonic()
    with pytest.raises(ImageBuildFailed, match=r"2 s|time|seconds"):
        bench.backend.prepare(spec)
    assert time.monotonic() - started < 40


def a_base_that_is_missing_is_named(bench: Bench) -> None:
    spec = bench.spec(b"FROM no-such-image-anywhere:at-all\nWORKDIR /app\n")
    if bench.kind == "bubblewrap":  # the host's root stands for any base
        assert bench.backend.prepare(spec).workdir == "/app"
        return
    with pytest.raises(SandboxError, match="no-such-image-anywhere"):
        bench.backend.prepare(spec)


def many_who_ask_at_once_wait_for_one_build(bench: Bench) -> None:
    mark = time.time_ns()
    spec = bench.spec(DOCKERFILE + f"RUN sleep 0.2; echo {mark} > /srv/mark\n".encode())
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda _n: bench.backend.prepare(spec), range(4)))
    assert sorted(image.was_cached for image in images) == [False, True, True, True]
    assert len({image.ref for image in images}) == 1


def an_image_depends_on_every_byte_of_its_files(bench: Bench) -> None:
    one, two = (
        bench.spec(DOCKERFILE + b"COPY extra /extra\n", SandboxFile("extra", data, mode))
        for data, mode in ((b"1", 0o644), (b"2", 0o755))
    )
    assert one.digest != two.digest
    for spec, wanted in ((one, "1644\n"), (two, "2755\n")):
        with bench.start(spec=spec) as sandbox:
            assert out(sandbox, "cat /extra; stat -c %a /extra") == wanted


# -- the network ------------------------------------------------------------------------------

_TALK = """
use IO::Socket::INET;
$s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "listen $!";
$c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->sockport) or die "tcp $!";
$p = $s->accept; print $c "over tcp\\n"; $c->flush; print scalar <$p>;
$u = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1') or die "udp $!";
$v = IO::Socket::INET->new(Proto => 'udp', PeerAddr => '127.0.0.1', PeerPort => $u->sockport);
$v->send("over udp\\n"); $u->recv($m, 99); print $m;
"""
_REACH = """
use Socket;
for (@ARGV) {
  my ($host, $port) = split /:/; my $s;
  socket $s, PF_INET, SOCK_STREAM, 0 or die; local $SIG{ALRM} = sub { die "late\\n" }; alarm 3;
  my $is_there = eval { connect $s, sockaddr_in($port, inet_aton($host)) }; alarm 0;
  print "$host\\n" if $is_there or $!{ECONNREFUSED};
}
print defined gethostbyname('example.org') ? "names\\n" : '';
"""
ELSEWHERE = ("1.1.1.1:53", "8.8.8.8:443", "10.0.0.1:80", "172.17.0.1:22", "169.254.169.254:80")


def without_a_network_there_is_loopback_and_nothing_else(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert perl(sandbox, _TALK).stdout == b"over tcp\nover udp\n"
        assert out(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]
        assert out(sandbox, "tail -n +2 /proc/net/route") == ""
        result = perl(sandbox, _REACH, *ELSEWHERE, seconds=60)
        assert (result.exit_status, result.stdout) == (0, b""), result
        assert perl(sandbox, _REACH, "127.0.0.1:9").stdout == b"127.0.0.1\n"


def every_network_that_is_offered_starts(bench: Bench) -> None:
    for mode in sorted(bench.offered):
        with bench.start(network=NetworkPolicy(mode, ("example.org",))) as sandbox:
            names = out(sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1").split()
            assert ("eth0" in names) == (mode is not NetworkMode.NO_NETWORK), names


# -- mounts -----------------------------------------------------------------------------------


def a_mount_is_seen_and_cannot_be_changed(bench: Bench) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "below").mkdir()
        (folder / "below" / "tool").write_bytes(b"#!/bin/bash\necho works\n")
        (folder / "below" / "tool").chmod(0o755)
        os.symlink("/etc/shadow", folder / "link")
        mounts = [Mount(str(folder), "/opt/ratchet/tools"), Mount(str(folder / "below"), "/srv/x")]
        with bench.start(mounts=mounts) as sandbox:
            assert out(sandbox, "/opt/ratchet/tools/below/tool; /srv/x/tool; ls /opt/ratchet") == (
                "works\nworks\ntools\n"
            )
            at = "/opt/ratchet/tools"
            for command in (
                *(f"echo > {at}/new", f"echo >> {at}/below/tool", f"rm {at}/link", f"rm -r {at}"),
                *(f"chmod 777 {at}/below/tool", f"mv {at}/below {at}/b", f"touch {at}/below"),
                *(f"mount -o remount,rw {at}", f"mount -o remount,rw,bind {at}", f"umount {at}"),
            ):
                assert sh(sandbox, command).exit_status != 0, command
            for user in bench.users:
                assert out(sandbox, "/srv/x/tool", user=user) == "works\n"
        assert sorted(path.name for path in folder.rglob("*")) == ["below", "link", "tool"]
        assert (folder / "below" / "tool").read_bytes().endswith(b"works\n")
        assert (folder / "below" / "tool").stat().st_mode & 0o777 == 0o755


CHECKS = (
    a_dockerfile_does_what_it_says,
    a_spec_may_overrule_its_dockerfile,
    a_step_that_fails_shows_its_last_words,
    a_source_that_is_missing_is_named,
    a_build_that_takes_too_long_is_ended,
    a_base_that_is_missing_is_named,
    many_who_ask_at_once_wait_for_one_build,
    an_image_depends_on_every_byte_of_its_files,
    without_a_network_there_is_loopback_and_nothing_else,
    every_network_that_is_offered_starts,
    a_mount_is_seen_and_cannot_be_changed,
)
