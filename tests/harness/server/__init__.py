"""A local OpenAI-compatible server whose models are pure functions of what they are asked."""

from tests.harness.server.faults import Fault, FaultPlan
from tests.harness.server.http import ModelServer, Served
from tests.harness.server.wire import Ask, Reply, Script, ToolCall

__all__ = ["Ask", "Fault", "FaultPlan", "ModelServer", "Reply", "Script", "Served", "ToolCall"]
