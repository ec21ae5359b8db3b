"""What is stored: one module per aggregate."""

from webapp.models.call import CallReservation, ModelCall
from webapp.models.dataset import Dataset, DatasetMember, DatasetVersion
from webapp.models.difficulty import DifficultyScore, Measure, MeasuredTrial, Solver, SolverKind
from webapp.models.environment import Blob, Environment, EnvironmentKind, Lineage
from webapp.models.errand import Errand, ErrandKind
from webapp.models.event import Event
from webapp.models.imports import Import, ImportEntry, ImportOutcome
from webapp.models.review import Review, ReviewLease, ReviewVerdict
from webapp.models.run import EvolutionRun, EvolutionStep
from webapp.models.trial import GateRecord, Trial, Verification
from webapp.models.user import Role, User

__all__ = [
    "Blob",
    "CallReservation",
    "Dataset",
    "DatasetMember",
    "DatasetVersion",
    "DifficultyScore",
    "Environment",
    "EnvironmentKind",
    "Errand",
    "ErrandKind",
    "Event",
    "EvolutionRun",
    "EvolutionStep",
    "GateRecord",
    "Import",
    "ImportEntry",
    "ImportOutcome",
    "Lineage",
    "Measure",
    "MeasuredTrial",
    "ModelCall",
    "Review",
    "ReviewLease",
    "ReviewVerdict",
    "Role",
    "Solver",
    "SolverKind",
    "Trial",
    "User",
    "Verification",
]
