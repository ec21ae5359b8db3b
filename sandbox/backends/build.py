"""Builds an image for the bubblewrap back-end: the steps of a Dockerfile, run in a sandbox."""

from __future__ import annotations

import hashlib
import posixpath
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox.backends import host_root
from sandbox.backends.copying import sources_of
from sandbox.contracts import Image, ImageSpec, Limits, SandboxFile
from sandbox.errors import TOO_SLOW, ImageBuildFailed, Refused, SandboxUnavailable
from sandbox.images import Step, apt_packages, expand, has_effect, pairs, parse_dockerfile, words

if TYPE_CHECKING:
    from sandbox.backends.bubblewrap import BubblewrapBackend
    from sandbox.backends.bubblewrap_sandbox import BubblewrapSandbox

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAX_LAYERS = 12
_LOG_BYTES = 8192


@dataclass
class _State:
    """What the steps so far have set."""

    workdir: str = "/"
    env: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    shell: tuple[str, ...] = ("/bin/sh", "-c")

    def variables(self) -> dict[str, str]:
        return {**self.arguments, **self.env}


def build_image(backend: BubblewrapBackend, spec: ImageSpec) -> Image:
    """The image of a spec, from the cache or built. Raises what `Backend.prepare` names."""
    context = {file.path: file for file in spec.files}
    _check_spec(spec, context)
    steps = [s for s in parse_dockerfile(context["Dockerfile"].data) if has_effect(s)]
    keys = _keys(backend, steps, spec)
    started = time.monotonic()
    manifest = backend.store.manifest(keys[-1])
    was_cached = manifest is not None
    if manifest is None:
        with backend.store.lock(keys[-1]):
            manifest = backend.store.manifest(keys[-1])
            was_cached = manifest is not None
            if manifest is None:
                manifest = _build(backend, spec, context, steps, keys)
                backend.store.write_manifest(keys[-1], manifest)
    return Image(
        digest=spec.digest,
        backend=backend.name,
        ref=keys[-1],
        workdir=spec.workdir or manifest["workdir"],
        env=(*((name, value) for name, value in manifest["env"]), *spec.env),
        user=manifest["user"],
        build_seconds=0.0 if was_cached else time.monotonic() - started,
        was_cached=was_cached,
    )


def _check_spec(spec: ImageSpec, context: dict[str, SandboxFile]) -> None:
    if not spec.is_host_root_compatible:
        raise Refused(
            "this bundle is not marked as runnable on the host's own /usr "
            "([metadata.ratchet] host_root); use Docker"
        )
    if "Dockerfile" not in context:
        if spec.docker_image is not None:
            raise Refused(f"the prebuilt image {spec.docker_image!r} needs Docker")
        raise ImageBuildFailed("environment/Dockerfile is missing")
    for name in ("docker-compose.yaml", ".dockerignore"):
        if name in context:
            raise Refused(f"environment/{name} needs Docker")


def _keys(backend: BubblewrapBackend, steps: Sequence[Step], spec: ImageSpec) -> list[str]:
    """One key per prefix of the steps, the empty prefix first."""
    keys = [hashlib.sha256(f"v2 {backend.store.skeleton_key}".encode()).hexdigest()]
    tree = {file.path: file for file in spec.files}
    for step in steps:
        total = hashlib.sha256(f"{keys[-1]}\n{step.keyword}\n{step.text}\n{step.flags}".encode())
        total.update(repr(step.heredocs).encode())
        if step.keyword in ("COPY", "ADD"):
            for path in sorted(tree):
                if _may_be_copied(step, path):
                    file = tree[path]
                    total.update(f"{path}\0{file.mode}\0{file.link}\0{file.digest}\n".encode())
        keys.append(total.hexdigest())
    return keys


def _may_be_copied(step: Step, path: str) -> bool:
    """A coarse answer (too much only makes the key too careful)."""
    sources = step.as_list() or tuple(words(step))
    for source in sources[:-1]:
        plain = posixpath.normpath(source.lstrip("/"))
        is_below = path == plain or path.startswith(f"{plain}/")
        if plain == "." or is_below or any(sign in source for sign in "*?[$\\"):
            return True
    return False


def _build(
    backend: BubblewrapBackend,
    spec: ImageSpec,
    context: dict[str, SandboxFile],
    steps: Sequence[Step],
    keys: Sequence[str],
) -> dict[str, Any]:
    layers: list[str] = [backend.store.skeleton]
    done = 0
    for index in range(len(steps), 0, -1):
        known = backend.store.manifest(keys[index])
        if known is not None and len(known["layers"]) < _MAX_LAYERS:
            layers, done = list(known["layers"]), index
            break
    builder = Builder(backend, spec, context)
    for step in steps[:done]:
        builder.set_only(step)
    if any(builder.changes_files(step) for step in steps[done:]):
        name = backend.store.new_name()
        image = Image("", backend.name, "", "/")
        with backend.open(layers, image, Limits(processes=2048), is_build=True) as sandbox:
            builder.begin(sandbox)
            for step in steps[done:]:
                builder.run(step)
            sandbox.kill_all()
            sandbox.store_layer(name)
        layers.append(f"layers/{keys[-1][:32]}")
        backend.store.publish(name, layers[-1])
    else:
        for step in steps[done:]:
            builder.set_only(step)
    state = builder.state
    return {
        "layers": layers,
        "workdir": state.workdir,
        "env": list(state.env.items()),
        "user": state.user,
    }


class Builder:
    """Runs steps one after another in a sandbox."""

    def __init__(
        self, backend: BubblewrapBackend, spec: ImageSpec, context: dict[str, SandboxFile]
    ) -> None:
        self.backend = backend
        self.context = context
        self.seconds = spec.build_timeout_seconds
        self.deadline = 0.0
        self.state = _State()
        self.sandbox: BubblewrapSandbox | None = None

    def begin(self, sandbox: BubblewrapSandbox) -> None:
        """Run the steps in this sandbox. The time it was waited for is not the bundle's."""
        self.sandbox = sandbox
        self.deadline = time.monotonic() + self.seconds

    def changes_files(self, step: Step) -> bool:
        """Whether a step needs a sandbox."""
        if step.keyword == "RUN":
            return apt_packages(step) is None
        return step.keyword in ("COPY", "ADD", "WORKDIR")

    def set_only(self, step: Step) -> None:
        """Take over what a step sets, without touching files."""
        state = self.state
        if step.keyword == "WORKDIR":
            path = expand(step.text.strip("\"'"), state.variables())
            state.workdir = posixpath.normpath(posixpath.join(state.workdir, path))
        elif step.keyword == "ENV":
            state.env.update(pairs(step, state.variables()))
        elif step.keyword == "ARG":
            for name, value in pairs(step, state.variables()):
                state.arguments.setdefault(name, value)
        elif step.keyword == "USER":
            state.user = expand(step.text, state.variables())
            if self.backend.id_count == 1 and state.user.split(":")[0] not in ("root", "0"):
                raise Refused(
                    f"{step.where}: other users than root need a range of user ids; "
                    "run as root, or use Docker"
                )
        elif step.keyword == "SHELL":
            shell = step.as_list()
            if not shell:
                raise ImageBuildFailed(f"{step.where}: the JSON form is required")
            state.shell = shell
        elif step.keyword == "RUN" and (packages := apt_packages(step)) is not None:
            host_root.check_packages(
                packages, has_mounted_python=self.backend.python_prefix is not None
            )

    def run(self, step: Step) -> None:
        """Do all that a step says."""
        self.set_only(step)
        if step.keyword == "WORKDIR":
            self._sandbox.write_files([], self.state.workdir)
        elif step.keyword in ("COPY", "ADD"):
            self._copy(step)
        elif step.keyword == "RUN" and apt_packages(step) is None:
            self._run(step)

    @property
    def _sandbox(self) -> BubblewrapSandbox:
        if self.sandbox is None:
            raise SandboxUnavailable("a build step without a sandbox")
        return self.sandbox

    # -- RUN ----------------------------------------------------------------------------------

    def _run(self, step: Step) -> None:
        state = self.state
        command = step.as_list() or (*state.shell, self._script(step))
        result = self._sandbox.exec(
            command,
            timeout_seconds=max(0.1, self.deadline - time.monotonic()),
            user=state.user,
            env=list({**state.arguments, **state.env}.items()),
            workdir=state.workdir,
        )
        log = (result.stdout + result.stderr)[-_LOG_BYTES:].decode("utf-8", "replace")
        if result.timed_out:
            raise ImageBuildFailed(
                f"{step.where}: the build's time was over ({self.seconds:g} s): {TOO_SLOW}", log
            )
        usage = self._sandbox.usage()
        if usage.oom_kills or usage.is_disk_full:
            limit = "memory" if usage.oom_kills else "disk"
            raise ImageBuildFailed(f"{step.where}: the build's {limit} was used up", log)
        if result.exit_status != 0:
            raise ImageBuildFailed(f"{step.where}: exit status {result.exit_status}", log)

    def _script(self, step: Step) -> str:
        if not step.heredocs:
            return step.text
        bodies = [body.decode() for _mark, body in step.heredocs]
        if step.text == step.heredocs[0][0]:  # the here-document is the script
            return bodies[0]
        text = step.text
        for mark, body in step.heredocs:
            name = mark.lstrip("<-").strip("\"' ")
            text += f"\n{body.decode()}{name}"
        return text

    # -- COPY, ADD ----------------------------------------------------------------------------

    def _copy(self, step: Step) -> None:
        variables = self.state.variables()
        parts = [expand(word, variables) for word in (step.as_list() or words(step))]
        if len(parts) < 2:
            raise ImageBuildFailed(f"{step.where}: needs a source and a destination")
        *sources, target = parts
        files, is_single_file = sources_of(step, sources, self.context, variables)
        path = posixpath.normpath(posixpath.join(self.state.workdir, target))
        is_folder = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
        if is_single_file and not is_folder and not self._is_folder(path):
            (file,) = files
            files = [SandboxFile(posixpath.basename(path), file.data, file.mode, file.link)]
            path = posixpath.dirname(path)
        flags = dict(step.flags)
        if "chmod" in flags:
            if not re.fullmatch(r"0?[0-7]{3,4}", flags["chmod"]):
                raise Refused(f"{step.where}: --chmod takes an octal mode here")
            mode = int(flags["chmod"], 8)
            files = [SandboxFile(f.path, f.data, mode, f.link) for f in files]
        owner = self._owner(step, expand(flags["chown"], variables)) if "chown" in flags else None
        self._sandbox.write_files(files, path, owner=owner)

    def _is_folder(self, path: str) -> bool:
        test = self._sandbox.exec(["test", "-d", path], timeout_seconds=10, user="root")
        return test.exit_status == 0

    def _owner(self, step: Step, text: str) -> tuple[int, int]:
        if self.backend.id_count == 1:
            raise Refused(f"{step.where}: --chown needs a range of user ids; use Docker")
        command = ["sh", "-c", "id -u; id -g"]
        result = self._sandbox.exec(command, timeout_seconds=10, user=text)
        uid, gid = result.stdout.split()
        return int(uid), int(gid)
