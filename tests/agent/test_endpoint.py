"""Which endpoint is chosen, and that looking for one tells nobody anything."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.model_server import ModelServer, status

from hermes_nb.agent.endpoint import Probe, choose, explicit, ollama_url
from hermes_nb.agent.provider import Endpoint
from hermes_nb.core.errors import ConfigError, NoEndpoint

SECRET = "sk-real-0123456789"


@dataclass(frozen=True)
class Given:
    name: str | None = None
    base_url: str | None = None
    key_env: str | None = None


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([], models=["nomic-embed-text", "qwen3:latest", "other"]) as one:
        yield one


def pick(
    given: Given | None = None,
    environ: dict[str, str] | None = None,
    *,
    probes: tuple[Probe, ...] = (),
    probe: bool = True,
    embedded: Endpoint | None = None,
) -> Endpoint:
    return choose(given or Given(), environ or {}, probe=probe, embedded=lambda: embedded, probes=probes)


DEMO = Endpoint("embedded:", "demo", None, "offline demo model", dialect="embedded", embedded=True)
KEYS = {"OPENAI_API_KEY": SECRET, "OPENROUTER_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}


def test_the_order_is_fixed_and_each_line_says_why() -> None:
    environ = {**KEYS, "OPENAI_BASE_URL": "https://proxy.example/v1", "HERMES_NB_MODEL": "m",
               "HERMES_NB_BASE_URL": "https://own.example/v1"}  # fmt: skip
    seen: list[tuple[str, str | None]] = []
    for gone in ("HERMES_NB_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"):
        found = pick(environ=environ)
        assert f"{gone} is set" in found.reason
        assert SECRET not in found.reason + repr(found)
        assert found.model == "m"
        seen.append((found.label, found.key_env))
        del environ[gone]
    assert seen == [
        ("own.example", None),
        ("proxy.example", "OPENAI_API_KEY"),
        ("api.openai.com", "OPENAI_API_KEY"),
        ("openrouter.ai", "OPENROUTER_API_KEY"),
        ("api.anthropic.com", "ANTHROPIC_API_KEY"),
    ]


def test_a_setting_wins_over_the_environment_of_others() -> None:
    found = pick(Given("m", "https://set.example/v1", "MY_KEY"), {**KEYS, "OPENAI_BASE_URL": "https://x.example/v1"})
    assert (found.base_url, found.model, found.key_env) == ("https://set.example/v1", "m", "MY_KEY")
    assert "model.base_url is set" in found.reason


def test_a_key_goes_only_to_the_service_it_belongs_to() -> None:
    assert pick(Given("m", "https://other.example/v1"), KEYS).key_env is None
    assert pick(Given("m", "https://openrouter.ai/api/v1"), KEYS).key_env == "OPENROUTER_API_KEY"
    assert (
        pick(Given("m", "https://other.example/v1"), {**KEYS, "HERMES_NB_API_KEY": "k"}).key_env == "HERMES_NB_API_KEY"
    )
    assert pick(environ={"HERMES_NB_API_KEY": "k"}).label == "api.openai.com"
    assert pick(Given(key_env="OPENROUTER_API_KEY"), {}).label == "openrouter.ai"


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_unset(empty: str) -> None:
    environ = {"OPENAI_BASE_URL": empty, "HERMES_NB_BASE_URL": empty, "OPENAI_API_KEY": "k", "HERMES_NB_MODEL": empty}
    found = pick(environ=environ)
    assert found.base_url == "https://api.openai.com/v1"
    assert found.model


def test_a_configured_endpoint_is_asked_for_its_model_when_none_is_named(server: ModelServer) -> None:
    found = pick(environ={"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": SECRET, "HERMES_NB_NO_PROBE": "1"})
    assert (found.model, found.dialect) == ("qwen3:latest", "local"), "not the embedding model"
    assert server.gets[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_configured_endpoint_that_does_not_answer_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ConfigError, match="HERMES_NB_MODEL"):
            pick(Given(base_url=url))
        assert pick(Given("m", url)).base_url == url, "with a name nothing is asked"


@pytest.mark.parametrize("url", ["api.openai.com/v1", "ftp://x/v1", "http://", "http://x:99999/v1", "https://a b/v1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no base URL"):
        explicit("m", url, "", {}, "test")


def test_a_server_on_this_machine_is_found_without_a_key_being_sent(server: ModelServer) -> None:
    found = pick(probes=(Probe("Ollama", server.url),), embedded=DEMO)
    assert (found.model, found.key_env, found.base_url) == ("qwen3:latest", None, server.url)
    assert "Ollama answers there" in found.reason
    assert all("authorization" not in get.headers for get in server.gets)


def test_the_first_of_the_list_wins_and_a_named_model_decides(server: ModelServer) -> None:
    with ModelServer([], models=["special"]) as second:
        probes = (Probe("A", server.url), Probe("B", second.url))
        assert pick(probes=probes).base_url == server.url
        assert pick(probes=probes[::-1]).base_url == second.url
        assert pick(Given("special"), probes=probes).base_url == second.url
        assert pick(Given("qwen3"), probes=probes[::-1]).model == "qwen3:latest"
        with pytest.raises(NoEndpoint, match=r"'absent'(.|\n)*A at .* serves: (.|\n)*B at .* serves: special"):
            pick(Given("absent"), probes=probes, embedded=DEMO)


def test_llama_cpp_must_confirm_that_it_is_one() -> None:
    probe_paths = ("/props", "/health")
    with (
        ModelServer([], models=["m"]) as plain,
        ModelServer([], models=["m"], gets={"/health": {"status": "ok"}}) as real,
    ):
        with pytest.raises(NoEndpoint):
            pick(probes=(Probe("llama.cpp", plain.url, probe_paths),))
        assert pick(probes=(Probe("llama.cpp", real.url, probe_paths),)).base_url == real.url


ODD = [
    status(200, b"<html>"),
    status(200, {"data": "x"}),
    status(200, [1]),
    status(200, {"data": [{"name": "x"}, 5]}),
    status(404, {}),
    status(302, b"", headers={"Location": "http://127.0.0.1:9/"}),
]


@pytest.mark.parametrize("answer", ODD)
def test_what_is_no_list_of_models_is_no_model_server(answer: object) -> None:
    with ModelServer([], gets={"/v1/models": answer}) as server:
        assert pick(probes=(Probe("x", server.url),), embedded=DEMO).embedded


def test_a_server_without_models_is_told_in_the_card() -> None:
    with ModelServer([], models=[]) as server, pytest.raises(NoEndpoint, match=r"Ollama runs at .* has no model yet"):
        pick(probes=(Probe("Ollama", server.url),))


def test_ports_that_accept_and_say_nothing_do_not_hold_the_choice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
        began = time.monotonic()
        assert pick(probes=(Probe("mute", url), Probe("mute too", url)), embedded=DEMO).embedded
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("off", ["probe", "variable"])
def test_probing_can_be_switched_off(server: ModelServer, off: str) -> None:
    environ = {"HERMES_NB_NO_PROBE": "1"} if off == "variable" else {}
    with pytest.raises(NoEndpoint, match="not looked for"):
        pick(environ=environ, probe=off != "probe", probes=(Probe("x", server.url),))
    assert not server.gets
    assert server.connections == 0


def test_ollama_host_is_asked_first(server: ModelServer) -> None:
    with ModelServer([], models=["m"]) as other:
        found = pick(environ={"OLLAMA_HOST": f"0.0.0.0:{server.port}"}, probes=(Probe("x", other.url),))
    assert (found.base_url, found.model) == (server.url, "qwen3:latest")
    assert "OLLAMA_HOST is set" in found.reason


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", ""),
        ("10.0.0.5", "http://10.0.0.5:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://box:80/", "http://box:80"),
        ("https://box/base/", "https://box:443/base"),
        ("[::1]:5", "http://[::1]:5"),
        ("box:notaport", ""),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(value: str, url: str) -> None:
    assert ollama_url(value) == url


def test_the_demo_model_comes_last_or_by_its_name() -> None:
    assert pick(embedded=DEMO).reason == "Model: demo at offline demo model (no key and no model server was found)."
    assert pick(Given("offline"), KEYS, embedded=DEMO).embedded
    with pytest.raises(NoEndpoint, match="hermes-nb model install"):
        pick(Given("embedded"), KEYS)


def test_the_help_card_has_three_ways_to_connect() -> None:
    with pytest.raises(NoEndpoint) as caught:
        pick()
    for words in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "Ollama", "LM Studio", "llama.cpp", "hermes-nb model install"):
        assert words in str(caught.value)


def test_no_thread_is_left_waiting(server: ModelServer) -> None:
    pick(probes=(Probe("x", server.url),))
    for thread in threading.enumerate():
        if thread.name == "hermes-nb-probe":
            thread.join(5)
            assert not thread.is_alive()
