"""Files put and read by the engine itself, for images whose own tools cannot do it.

It costs 60 ms a time, where the container's stream costs 5; and the engine follows links inside
the container, so the driver says first, by builtins of its shell, where there are none.
"""

from __future__ import annotations

import tarfile
from typing import IO, cast

from sandbox.backends.docker_engine import Engine, engine_errors
from sandbox.backends.docker_export import Body
from sandbox.backends.docker_tar import Collection, absolute
from sandbox.backends.tar_end import Member, has_end
from sandbox.errors import SandboxUnavailable


def put(engine: Engine, name: str, archive: bytes) -> None:
    """Unpack an archive at the container's root. Raises SandboxUnavailable."""
    with engine_errors("put files into a container"):
        engine.api.put_archive(name, "/", archive)


def collect(engine: Engine, name: str, path: str, into: Collection) -> None:
    """Read what is at a path, itself no link's target, into a collection.

    Raises what the collection raises, and SandboxUnavailable.
    """
    api = engine.api
    with engine_errors("read files of a container"):
        answer = api._get(
            api._url("/containers/{0}/archive", name),
            params={"path": path},
            headers={"Accept-Encoding": "identity"},  # or the engine compresses it
            stream=True,
        )
        api._raise_for_status(answer)
    above = path.rpartition("/")[0]
    try:
        stream = cast(IO[bytes], Body(answer.raw))
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as tar:
            for member in tar:
                _take(tar, member, above, into)
            if not has_end(tar):
                raise SandboxUnavailable(f"the engine's archive of {path} broke off")
    except tarfile.TarError as error:
        raise SandboxUnavailable(f"the engine's archive of {path} broke off: {error}") from error
    finally:
        answer.close()


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, above: str, into: Collection) -> None:
    path = absolute(f"{above}/{member.name}")
    source = into.source_of(path)
    if source is None:
        return
    if member.isdir():
        into.add_folder(path, member.mode, source)
    elif member.issym():
        into.add_link(path, member.linkname)
    elif member.islnk():
        data = into.data_at(absolute(f"{above}/{member.linkname}"))
        if data is None:
            raise SandboxUnavailable(f"{path} is another name of a file that was not read")
        into.announce(len(data))
        into.add_file(path, member.mode, data)
    elif member.isreg():
        into.announce(member.size)
        file = tar.extractfile(member)
        into.add_file(path, member.mode, file.read() if file is not None else b"")
