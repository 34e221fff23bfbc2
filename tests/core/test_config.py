import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core import tomledit
from hermes_nb.core.config import HIDDEN, Settings, set_value, unset_value
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode
from hermes_nb.core.paths import Home
from hermes_nb.core.setting import SETTINGS, setting_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def write(home: Home, text: str) -> None:
    home.ensure()
    home.config.write_text(text, encoding="utf-8")


def error_of(call) -> str:
    with pytest.raises(ConfigError) as caught:
        call()
    return str(caught.value)


def test_without_a_file_every_setting_has_its_default(home):
    settings = Settings.load(home, {})
    assert settings.model.name is None
    assert settings.toolsets.enabled is None
    assert settings.approvals.mode is ApprovalMode.ASK
    assert not settings.approvals.chosen
    assert settings.gateway.http.allow == ()
    assert {value.origin for value in settings.values.values()} == {"default"}
    assert not home.root.exists()


def test_the_file_wins_over_defaults_and_variables_win_over_the_file(home):
    write(home, '[model]\nname = "file"\nbase_url = "http://file/v1"\n[approvals]\nmode = "safe"\n')
    settings = Settings.load(home, {"HERMES_NB_MODEL": "variable", "HERMES_NB_BASE_URL": ""})
    assert settings.model.name == "variable"
    assert settings.model.base_url == "http://file/v1"
    assert settings.approvals.chosen
    assert settings.value("model.name").origin == "HERMES_NB_MODEL"
    assert settings.value("model.base_url").origin == str(home.config)


def test_the_key_of_the_file_does_not_go_to_the_endpoint_of_a_variable(home):
    write(home, '[model]\nbase_url = "http://mine/v1"\nkey_env = "MY_KEY"\n')
    elsewhere = Settings.load(home, {"HERMES_NB_BASE_URL": "http://other/v1"})
    assert elsewhere.model.key_env is None
    same = Settings.load(home, {"HERMES_NB_BASE_URL": "http://mine/v1"})
    assert same.model.key_env == "MY_KEY"
    given_key = Settings.load(home, {"HERMES_NB_BASE_URL": "http://other/v1", "HERMES_NB_API_KEY": "secret"})
    assert given_key.model.key_env == "HERMES_NB_API_KEY"
    assert "secret" not in repr(given_key)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('\n[model]\nnam = "x"\n', 3, ["model.nam", "model.name"]),
        ('[modle]\nname = "x"\n', 2, ["modle.name", "Did you mean model.name?"]),
        ("[gateway.http]\nport = true\n", 2, ["gateway.http.port", "whole number"]),
        ('[review]\n# off\nenabled = "no"\n', 3, ["review.enabled", "true or false"]),
        ("model = 3\n", 1, ["'model'"]),
        ("[toolsets]\nenabled = [1, 2]\n", 2, ["toolsets.enabled", "list of texts"]),
        ("model.name.deep = 1\n", 1, ["model.name"]),
        ("[[model]]\nname = 'x'\n", 1, ["'model'"]),
        ('[approvals]\nmode = "sometimes"\n', 2, ["ask, safe, deny, off"]),
    ],
)
def test_a_wrong_line_is_named_with_file_line_and_what_fits(home, text, line, words):
    write(home, text)
    message = error_of(lambda: Settings.load(home, {}))
    assert f"{home.config}, line {line}:" in message
    for word in words:
        assert word in message


def test_broken_toml_names_the_line_and_is_not_overwritten(home):
    write(home, '[model]\nname = "x\n')
    assert "line 2" in error_of(lambda: Settings.load(home, {}))
    assert "line 2" in error_of(lambda: set_value(home, "model.name", "y"))
    assert home.config.read_text() == '[model]\nname = "x\n'


def test_a_file_that_is_not_utf8_or_deeply_nested_gives_an_error(home):
    home.ensure()
    home.config.write_bytes(b"[model]\nname = '\xff'\n")
    assert "UTF-8" in error_of(lambda: Settings.load(home, {}))
    home.config.write_text("a = " + "[" * 100_000)
    assert str(home.config) in error_of(lambda: Settings.load(home, {}))


def test_a_byte_order_mark_is_accepted(home):
    home.ensure()
    home.config.write_bytes(b'\xef\xbb\xbf[model]\r\nname = "x"\r\n')
    assert Settings.load(home, {}).model.name == "x"
    set_value(home, "model.name", "y")
    assert Settings.load(home, {}).model.name == "y"


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("model.nam", "x", "Did you mean model.name?"),
        ("mode", "ask", "Did you mean approvals.mode?"),
        ("model", "x", "not a setting"),
        ("", "x", "not a setting"),
        ("approvals.mode", "aks", "Did you mean ask?"),
        ("model.base_url", "localhost:11434", "http://localhost:11434/v1"),
        ("model.base_url", "http://[::1", "http://localhost:11434/v1"),
        ("model.base_url", "http://h:99999/v1", "http://localhost:11434/v1"),
        ("model.fallbacks", "a,b", '["one", "two"]'),
        ("model.fallbacks", "[1]", "list of texts"),
        ("gateway.http.port", "70000", "65535"),
        ("gateway.http.port", "８０", "whole number"),
        ("compaction.threshold", "nan", "0.5"),
        ("compaction.threshold", "0", "0.5"),
        ("review.enabled", "perhaps", "true or false"),
        ("model.name", "  ", "takes a text"),
        ("model.name", "\udcff", "UTF-8"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(home, key, text, words):
    assert words in error_of(lambda: set_value(home, key, text))
    assert not home.config.exists()


@pytest.mark.parametrize("pasted", ["sk-abcdefghijklmnop1234", "sk_live_abcdefghijklmnop12", "0123456789abcdef" * 2])
def test_a_key_pasted_where_a_variable_name_belongs_is_refused_and_not_repeated(home, pasted):
    message = error_of(lambda: set_value(home, "model.key_env", pasted))
    assert "environment variable" in message
    assert pasted not in message


def test_a_password_in_an_address_is_refused_and_not_repeated(home):
    message = error_of(lambda: set_value(home, "model.base_url", "https://me:hunter2@host/v1"))
    assert "hunter2" not in message


def test_a_token_is_never_shown(home):
    value = set_value(home, "gateway.discord.token", "very-secret")
    settings = Settings.load(home, {})
    assert settings.gateway.discord.token == "very-secret"
    for text in (value.shown, repr(value), repr(settings), settings.value("gateway.discord.token").shown):
        assert "very-secret" not in text
    assert value.shown == HIDDEN


def test_the_file_is_readable_by_its_owner_only(home):
    set_value(home, "model.name", "x")
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
    home.config.chmod(0o644)
    set_value(home, "model.name", "y")
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600


def test_a_linked_file_stays_a_link(home, tmp_path):
    home.ensure()
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "config.toml").write_text("# mine\n")
    home.config.symlink_to(dotfiles / "config.toml")
    set_value(home, "model.name", "x")
    assert home.config.is_symlink()
    assert (dotfiles / "config.toml").read_text().startswith("# mine\n")


def test_comments_order_and_layout_of_the_user_stay(home):
    text = """\
# my settings
[model]          # the good one
name = "old"     # do not touch on Fridays
# base_url = "http://other/v1"

[toolsets]
disabled = [
    "browser",   # no display here
    "shell",
]

[memory]
char_limit = 3000
"""
    write(home, text)
    set_value(home, "model.name", 'new # "quoted"')
    set_value(home, "model.base_url", "http://localhost:1/v1")
    set_value(home, "toolsets.disabled", '["browser"]')
    set_value(home, "gateway.home.discord", "#general")
    set_value(home, "memory.char_limit", "400")
    edited = home.config.read_text()
    for comment in ("# my settings", "# the good one", "# do not touch on Fridays", "# no display here"):
        assert comment in edited
    assert '# base_url = "http://other/v1"' in edited
    settings = Settings.load(home, {})
    assert settings.model.name == 'new # "quoted"'
    assert settings.toolsets.disabled == ("browser",)
    assert settings.gateway.home == {"discord": "#general"}
    assert edited.index("[model]") < edited.index("base_url = ") < edited.index("[toolsets]")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        'model.name = "x"',
        'model = { name = "x", fallbacks = ["a"] } # inline\n',
        '[model]\nname = """x\n# no comment\n"""\n',
        "[model]\nname = '''a'''  # c\n[memory]\n",
        '["model"]\n"name" = "x"\n',
        '[ model ]\r\nname = "x"\r\n',
        "[model]\n[memory]\nchar_limit = 300\n[model.fallbacks_are_elsewhere]\n",
        '[gateway.http]\nport = 1\n[gateway]\ndiscord.allow = ["a"]\n',
        'gateway.http.port = 1\ngateway.home = { x = "#y" }\n',
        "[gateway]\n\n[gateway.home]\n",
        '[gateway.home]\nx = "a=b#c"  # a = b\n',
    ],
)
@pytest.mark.parametrize("path", [("model", "name"), ("gateway", "discord", "token"), ("gateway", "home", "x")])
def test_every_layout_of_a_file_can_be_edited_and_edited_back(text, path):
    before = tomllib.loads(text)
    edited = tomledit.set_in(text, path, "new\n\x7f\"'")
    after = tomllib.loads(edited)
    assert tomledit.lookup(after, path) == "new\n\x7f\"'"
    removed = tomllib.loads(tomledit.unset_in(edited, path))
    assert tomledit.lookup(removed, path) is None
    for setting in SETTINGS:
        other = tuple(setting.key.split("."))
        if other != path:
            assert tomledit.lookup(after, other) == tomledit.lookup(before, other)
            assert tomledit.lookup(removed, other) == tomledit.lookup(before, other)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_any_text_survives_the_way_into_the_file_and_back(text, items):
    edited = tomledit.set_in(tomledit.set_in("# c\n", ("model", "name"), text), ("approvals", "allow"), items)
    assert tomllib.loads(edited) == {"model": {"name": text}, "approvals": {"allow": items}}


def test_a_wrong_key_elsewhere_in_the_file_does_not_stop_a_correction(home):
    write(home, '[model]\nnam = "x"\n')
    set_value(home, "model.name", "y")
    unset_value(home, "model.nam")
    assert Settings.load(home, {}).model.name == "y"


def test_unset_gives_the_default_back(home):
    set_value(home, "memory.write", "stage")
    unset_value(home, "memory.write")
    unset_value(home, "memory.write")
    assert Settings.load(home, {}).memory.write == "write"
    assert "Did you mean memory.write?" in error_of(lambda: unset_value(home, "memory.writ"))


def test_writers_at_the_same_moment_lose_nothing(home):
    code = (
        "import sys; from pathlib import Path; from hermes_nb.core.paths import Home;"
        "from hermes_nb.core.config import set_value;"
        "[set_value(Home(Path(sys.argv[1])), f'gateway.home.p{sys.argv[2]}x{i}', 'v') for i in range(10)]"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(home.root), str(n)]) for n in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(Settings.load(home, {}).gateway.home) == 40
    assert sorted(item.name for item in home.root.iterdir()) == ["config.lock", "config.toml"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_is_named(home):
    home.ensure()
    home.root.chmod(0o500)
    assert "HERMES_NB_HOME" in error_of(lambda: set_value(home, "model.name", "x"))


def test_a_home_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "HERMES_NB_HOME" in error_of(lambda: set_value(Home(tmp_path / "file"), "model.name", "x"))


def test_every_setting_accepts_its_own_default(home):
    settings = Settings.load(home, {})
    for setting in SETTINGS:
        assert setting_of(setting.key) is setting
        if setting.default is not None:
            set_value(home, setting.key, settings.value(setting.key).shown)
    again = Settings.load(home, {})
    assert {key: value.value for key, value in again.values.items()} == {
        key: value.value for key, value in settings.values.items()
    }
