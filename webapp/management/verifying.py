"""A verification carried out by a command itself, for `verify` and `evolve --harden`."""

from __future__ import annotations

from evolution.gates.protocol import Depth
from webapp import dispatch, wiring
from webapp.adapters import work
from webapp.models import Environment, Verification
from webapp.services import leases, verifications


def verify_here(
    environment: Environment, depth: Depth, *, renew: str = "", sandbox: str = ""
) -> Verification:
    """One new verification, carried out in this thread; see `Verification.renewed`."""
    with dispatch.muted():
        verification = verifications.open_verification(environment, depth=depth, renew=renew)
        carry_out_here(verification, sandbox=sandbox)
    return verification


def carry_out_here(verification: Verification, *, sandbox: str = "") -> None:
    """A verification that was opened, carried out in this thread."""
    try:
        work.work_on_verification(
            verification.pk, lambda party: wiring.runner(party, sandbox), wiring.worker_name()
        )
    finally:  # after an error it would look as if somebody worked on it
        leases.give_up(verification, "the command that verified it met an error")
