"""Another user with the rights of root: what root may do, by another number and another name.

The capabilities of the calling process are handed on, so that nothing fails for want of rights.
What insists on the number itself fails.
"""

from __future__ import annotations

from dataclasses import replace

from sandbox.contracts import SandboxFile, TrialResult, TrialSpec

SOMEBODY = "nobody"
"""Whom programs run as that ask who they are; every image has him."""
NOT_THERE = "ratchet: no other user can be had here"
_ASKED = "test.asked.sh"
_BECOME = f"""\
rights=
mask=$((16#$(sed -n 's/^CapPrm:[[:space:]]*//p' /proc/self/status)))
for number in {{0..40}}; do
    ((mask >> number & 1)) && rights+=",+cap_$number"
done
as=(setpriv "--reuid={SOMEBODY}" "--inh-caps=${{rights#,}}" "--ambient-caps=${{rights#,}}")
"${{as[@]}}" true 2>/dev/null || {{ echo '{NOT_THERE}'; exit 1; }}
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
exec "${{as[@]}}" """


def solving(spec: TrialSpec) -> TrialSpec:
    """The trial, its solver being somebody else with the rights of root."""
    command = f"{_BECOME}bash -c '{spec.solver.command}'"
    return replace(spec, solver=replace(spec.solver, command=command))


def judging(spec: TrialSpec) -> TrialSpec:
    """The trial, its tests being run by somebody else with the rights of root."""
    files = [
        replace(file, path=_ASKED) if file.path == "test.sh" else file
        for file in spec.verifier.files
    ]
    script = f'#!/bin/bash\n{_BECOME}/tests/{_ASKED} "$@"\n'
    files.append(SandboxFile("test.sh", script.encode(), 0o755))
    return replace(spec, verifier=replace(spec.verifier, files=tuple(sorted(files))))


def is_there(result: TrialResult) -> bool:
    """Whether the other user was there at all."""
    said = NOT_THERE.encode()
    return said not in result.solver_output and said not in result.verifier_output
