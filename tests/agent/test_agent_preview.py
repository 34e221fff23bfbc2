"""The preview of the next request is the request, byte for byte, and nothing is sent or stored for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.agents import OneServer, echo, make_agent, make_store, tool
from support.model_server import ModelServer, call, say

from hermes_nb.agent.agent import TurnOptions
from hermes_nb.agent.preview import system_text
from hermes_nb.agent.reuse import Trail
from hermes_nb.core.errors import NoEndpoint
from hermes_nb.core.names import ApprovalMode
from hermes_nb.tools.toolsets import resolve


def test_the_preview_is_what_is_sent_next(tmp_path: Path) -> None:
    with ModelServer([call("echo", {"text": "世界"}), say("1"), say("2"), say("3")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        first = agent.preview()
        assert not first.frozen
        assert not store.sessions()
        assert not server.bodies
        agent.run("one")
        assert server.bodies[0] == first.body("one")
        options = TurnOptions(surface="terminal", recall=["df: 3 rows"], mode=ApprovalMode.OFF)
        second = agent.preview(options)
        assert second.frozen
        assert "df: 3 rows" in second.recall
        assert agent.preview(options) == second
        agent.run("two", options)
        assert server.bodies[2] == second.body("two")
        later = make_agent(store, server.url, [echo()], session=agent.session, surface="notebook")
        assert later.preview().recall == "<recall>\nsurface: notebook\napprovals: on\n</recall>\n\n"


def test_a_broken_end_is_closed_as_the_next_turn_closes_it(tmp_path: Path) -> None:
    with ModelServer([call("echo"), say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        agent.run("one")
        row = json.loads(store.rows(agent.session.id)[1].wire)
        store.append(agent.session.id, {"role": "user", "content": "x"}, dialect="local", turn_id="dead")
        store.append(agent.session.id, row, dialect="local", turn_id="dead")
        fresh = make_agent(store, server.url, [echo()], session=agent.session)
        preview = fresh.preview()
        fresh.run("two")
        assert server.bodies[-1] == preview.body("two")


def test_what_a_new_session_would_get_is_told_apart_from_what_is_frozen(tmp_path: Path) -> None:
    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        memory = ["MEMORY\n- tea"]
        agent = make_agent(store, server.url, [echo()], memory=lambda user: memory[0])
        agent.run("one")
        assert agent.fresh_prefix() == store.prefix(agent.session.id)
        memory[0] = "MEMORY\n- coffee"
        agent.registry.add(tool("more", lambda context: ""))
        agent.selection = resolve(agent.registry)
        fresh = agent.fresh_prefix()
        assert "coffee" in system_text(fresh)
        assert b'"more"' in fresh.tools
        assert store.prefix(agent.session.id) == agent.preview().prefix
        assert "tea" in system_text(agent.preview().prefix)


def test_an_endpoint_that_is_gone_does_not_hide_what_is_frozen(tmp_path: Path) -> None:
    class Nothing(OneServer):
        def primary(self):
            raise NoEndpoint("nothing here")

    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        session = make_agent(store, server.url).run("a").session_id
        models = Nothing(server.url)
        found = make_agent(store, server.url, models=models, session=store.session(session)).preview()
        assert found.frozen
        assert len(found.history) == 2
        with pytest.raises(NoEndpoint):
            make_agent(store, server.url, models=models).preview()


def test_a_turn_says_for_each_request_what_it_reused(tmp_path: Path) -> None:
    trails: dict[tuple[str, str, str], Trail] = {}
    with ModelServer([call("echo"), say("1"), say("2"), say("3"), say("4")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()], trails=trails)
        first = agent.run("one")
        assert [request.reuse for request in first.requests] == [None, 1.0]
        assert [request.size for request in first.requests] == [len(body) for body in server.bodies]
        assert sum(request.usage.prompt for request in first.requests if request.usage) == first.usage.prompt
        later = make_agent(store, server.url, [echo()], session=agent.session, trails=trails, surface="elsewhere")
        assert [request.reuse for request in later.run("two").requests] == [1.0]
        later.use(model="other")
        assert [request.reuse for request in later.run("three").requests] == [None]
        later.use(selection=resolve(later.registry, []))
        share = later.run("four").requests[0].reuse
        assert share is not None
        assert share < 1.0
