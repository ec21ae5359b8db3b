"""Start one PostgreSQL program as it wants to be started. Run by path, with no imports of ours.

Usage: python -I -S postgres_launcher.py PARENT-PID PROGRAM ARGUMENT…

PostgreSQL refuses to run as root, and `initdb` wants a name for the user. Root (and a user without
a name) therefore becomes an ordinary user *inside a user namespace* that holds nothing but
ourselves: outside it is still the same user, so every file stays ours and every folder that we may
enter, PostgreSQL may enter too. The program ends with its parent.
"""

import ctypes
import os
import pwd
import signal
import sys

PR_SET_PDEATHSIG = 1


def _needs_other_name() -> bool:
    if os.geteuid() == 0:
        return True
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return True
    return False


def _become_ordinary() -> None:
    ordinary = next((entry for entry in pwd.getpwall() if entry.pw_uid != 0), None)
    inner = (ordinary.pw_uid, ordinary.pw_gid) if ordinary else (1, 1)
    outer = (os.geteuid(), os.getegid())
    os.unshare(os.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inner[0]} {outer[0]} 1"),
        ("gid_map", f"{inner[1]} {outer[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def main() -> None:
    if _needs_other_name():
        try:
            _become_ordinary()
        except OSError:  # its text would mislead: the limit on namespaces says "no space left"
            sys.exit(
                "error: PostgreSQL does not run as root, and this machine refuses user namespaces:"
                " run as an ordinary user, allow user namespaces (sysctl"
                " user.max_user_namespaces), or set DATABASE_URL to a server"
            )
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # A fast shutdown when the keeper dies; set after the change of user, which would clear it.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):  # it died before we could ask
        sys.exit("the keeper ended")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 -- nothing here is for a shell


main()
