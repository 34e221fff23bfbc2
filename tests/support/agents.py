"""Makes agents for tests: a real store, the real client, the scripted server, tools that tests bring."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_nb.agent.agent import Agent, Policy
from hermes_nb.agent.loop import Limits
from hermes_nb.agent.provider import Endpoint, Provider
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.agent.retry import RetryPolicy
from hermes_nb.core.names import ApprovalMode, Parallel, Risk
from hermes_nb.prompt.builder import IDENTITY
from hermes_nb.store.store import Store, open_store
from hermes_nb.tools.registry import Registry
from hermes_nb.tools.tool import Tool, ToolContext
from hermes_nb.tools.toolsets import resolve

QUICK = RetryPolicy(retries=2, base=0.01, cap=0.02)


class OneServer:
    """Models served by one scripted server."""

    def __init__(self, url: str, model: str = "scripted-model") -> None:
        self.endpoint = Endpoint(url, model, None, "scripted", dialect="local")
        self._open: dict[str, Provider] = {}

    def primary(self) -> Endpoint:
        return self.endpoint

    def named(self, model: str) -> Endpoint:
        if model == "embedded":
            return Endpoint("embedded:", "SmolLM2", None, "offline demo model", dialect="embedded", embedded=True)
        return replace(self.endpoint, model=model)

    def open(self, endpoint: Endpoint) -> Provider:
        if endpoint.model not in self._open:
            self._open[endpoint.model] = OpenAIProvider(endpoint, environ={})
        return self._open[endpoint.model]


def tool(
    name: str,
    handler: Callable[..., Any],
    *,
    properties: Mapping[str, Any] | None = None,
    required: Iterable[str] = (),
    risk: Risk = Risk.READ,
    parallel: Parallel = Parallel.NEVER,
    **more: Any,
) -> Tool:
    """Return a tool; by default it reads only and never asks."""
    schema = {"type": "object", "properties": dict(properties or {}), "required": list(required)}
    return Tool(name, f"The tool {name}.", schema, handler, "test", risk=risk, parallel=parallel, **more)


def echo() -> Tool:
    def handler(context: ToolContext, text: str = "") -> str:
        return f"echo {text}"

    return tool("echo", handler, properties={"text": {"type": "string"}}, parallel=Parallel.SAFE)


class Held:
    """A tool that waits inside until it is let go: ``entered`` is set when it runs."""

    def __init__(self, name: str = "wait") -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self.left = threading.Event()
        self.tool = tool(name, self._handler)

    def _handler(self, context: ToolContext) -> str:
        self.entered.set()
        assert self.leave.wait(30)
        self.left.set()
        return "left"


def make_store(folder: Path) -> Store:
    return open_store(folder / "state.db", user="ann")


def make_agent(
    store: Store,
    server_url: str,
    tools: Iterable[Tool] = (),
    *,
    steps: int = 20,
    mode: ApprovalMode = ApprovalMode.ASK,
    chosen: bool = False,
    memory: Callable[[str], str] = lambda user: "",
    **more: Any,
) -> Agent:
    registry = Registry(tools)
    return Agent(
        store=store,
        models=more.pop("models", None) or OneServer(server_url),
        registry=registry,
        selection=more.pop("selection", None) or resolve(registry),
        identity=IDENTITY,
        memory=memory,
        services=more.pop("services", {"store": store}),
        policy=lambda: Policy(mode, chosen),
        limits=Limits(steps=steps, retry=QUICK),
        surface=more.pop("surface", "notebook"),
        **more,
    )
