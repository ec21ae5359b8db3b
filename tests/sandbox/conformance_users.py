"""Whom a command runs as, in which environment, and where."""

from __future__ import annotations

import pytest

from sandbox.contracts import SandboxFile
from sandbox.errors import Refused
from tests.sandbox.conformance_bench import DOCKERFILE, Bench, out, sh

_WHO = "id -u; id -g; echo $HOME"


def a_command_is_roots_if_nobody_is_named(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, f"{_WHO}; id -G") == "0\n0\n/root\n0\n"
        for name in ("root", "0", "0:0", "root:root"):
            assert out(sandbox, _WHO, user=name) == "0\n0\n/root\n", name
        assert out(sandbox, "touch /app/mine; stat -c %u:%g:%a /app/mine /app") == (
            "0:0:644\n0:0:755\n"
        )


def others_come_by_name_and_by_number(bench: Bench) -> None:
    with bench.start() as sandbox:
        if not bench.has_users:
            with pytest.raises(Refused, match="nobody"):
                out(sandbox, _WHO, user="nobody")
            return
        nobody = "65534\n65534\n/nonexistent\n"
        assert out(sandbox, _WHO, user="nobody") == nobody
        assert out(sandbox, _WHO, user="65534") == nobody
        assert out(sandbox, _WHO, user="nobody:daemon") == "65534\n1\n/nonexistent\n"
        assert out(sandbox, _WHO, user="65534:4321") == "65534\n4321\n/nonexistent\n"
        assert out(sandbox, _WHO, user="12345") == "12345\n0\n/\n"
        sh(sandbox, "echo 'crowd:x:4000:nobody' >> /etc/group")
        assert out(sandbox, "id -G", user="nobody").split() == ["65534", "4000"]


def an_unknown_user_is_refused_by_name(bench: Bench) -> None:
    with bench.start() as sandbox:
        for name in ("nobody-knows", "root:nobody-knows"):
            with pytest.raises(Refused, match="nobody-knows"):
                sh(sandbox, "true", user=name)
        assert out(sandbox, "echo fine") == "fine\n"


def an_ordinary_user_may_not_do_what_root_may(bench: Bench) -> None:
    if not bench.has_users:
        return others_come_by_name_and_by_number(bench)
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("secret", b"x", 0o600)], "/app")
        for command in ("cat /app/secret", "touch /app/x", "touch /etc/x", "kill -0 1"):
            assert sh(sandbox, command, user="nobody").exit_status != 0, command
        assert out(sandbox, "cat /app/secret") == "x"
        assert out(sandbox, "cd /tmp; echo > mine; stat -c %u mine", user="nobody") == "65534\n"
    return None


def the_user_of_an_image_is_kept(bench: Bench) -> None:
    if not bench.has_users:
        return others_come_by_name_and_by_number(bench)
    dockerfile = DOCKERFILE + b"RUN mkdir /var/work && chown nobody /var/work\nUSER nobody\n"
    with bench.start(spec=bench.spec(dockerfile)) as sandbox:
        assert out(sandbox, f"{_WHO}; touch /var/work/x") == "65534\n65534\n/nonexistent\n"
        assert out(sandbox, "id -u", user="root") == "0\n"
        sandbox.write_files([SandboxFile("of-root", b"")], "/var/work")
        assert out(sandbox, "stat -c %u /var/work/of-root") == "0\n"
    return None


def variables_come_as_they_are(bench: Bench) -> None:
    pairs = (
        ("EMPTY", ""),
        ("LINES_", "a\nb\n\n"),
        ("UNICODE", "ü→\U0001f600"),
        ("QUOTES", "'\"`$HOME\\"),
        ("EQUALS", "a=b=c"),
        ("odd.name-1", "x"),
        ("BLANKS", "  a  "),
        ("TWICE", "first"),
        ("TWICE", "second"),
    )
    with bench.start() as sandbox:
        result = sandbox.exec(["env", "-0"], timeout_seconds=20, env=pairs)
        rows = dict(row.split("=", 1) for row in result.stdout.decode().split("\0") if row)
    for name, value in dict(pairs).items():
        assert rows[name] == value


def variables_of_the_image_may_be_overridden(bench: Bench) -> None:
    dockerfile = DOCKERFILE + b'ENV ONE=1 TWO="2 $HOME" ODD=a=b\nENV THREE ${ONE}3\n'
    with bench.start(spec=bench.spec(dockerfile)) as sandbox:
        assert out(sandbox, "echo $ONE,$THREE,$ODD") == "1,13,a=b\n"
        assert out(sandbox, "echo $ONE,$THREE", env=[("ONE", "x")]) == "x,13\n"
        assert out(sandbox, "echo $PATH", env=[("PATH", "/bin:/mine")]) == "/bin:/mine\n"
        assert out(sandbox, "echo $HOME", env=[("HOME", "/tmp")]) == "/tmp\n"


def nothing_else_is_in_the_environment(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert set(out(sandbox, "env | cut -d= -f1").split()) == {
            *("HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_"),
        }
        assert out(sandbox, "echo $PATH; umask") == (
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n0022\n"
        )


def a_command_runs_where_it_should(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, "pwd; ls") == "/app\ndata\n"
        assert out(sandbox, "pwd", workdir="/tmp") == "/tmp\n"
        sandbox.write_files([], "/srv/odd ünï\n-place")
        assert out(sandbox, "pwd", workdir="/srv/odd ünï\n-place") == "/srv/odd ünï\n-place\n"


CHECKS = (
    a_command_is_roots_if_nobody_is_named,
    others_come_by_name_and_by_number,
    an_unknown_user_is_refused_by_name,
    an_ordinary_user_may_not_do_what_root_may,
    the_user_of_an_image_is_kept,
    variables_come_as_they_are,
    variables_of_the_image_may_be_overridden,
    nothing_else_is_in_the_environment,
    a_command_runs_where_it_should,
)
