import re
from pathlib import Path

import pytest

from hermes_nb.cli import cli
from hermes_nb.core.setting import HOME_CHANNEL, SETTINGS
from hermes_nb.notebook.arguments import FLAGS
from hermes_nb.notebook.magics import COMMANDS

CLONE = Path(__file__).parent.parent
PAGES = [page for page in CLONE.rglob("*.md") if not {".venv", "node_modules", ".cache"} & set(page.parts)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CLONE)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_every_setting_is_documented():
    text = (CLONE / "docs" / "configuration.md").read_text(encoding="utf-8")
    for setting in SETTINGS:
        assert f"| `{setting.key}` |" in text
    assert f"`{HOME_CHANNEL}.PLATFORM`" in text


def test_every_flag_and_command_of_the_notebook_is_documented():
    text = (CLONE / "docs" / "notebook.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert name == "status" or re.search(rf"`(%hermes )?{name}\b", text), name
    for flag in FLAGS:
        # The long form of a short flag is in %%hermes?.
        assert flag in text or flag in ("--model", "--session", "--toolset", "--variable", "--output"), flag


def test_every_command_line_command_is_documented():
    text = "".join(page.read_text(encoding="utf-8") for page in (CLONE / "docs").glob("*.md"))
    for name in cli.commands:
        assert re.search(rf"hermes-nb {name}\b", text), name


def test_the_page_for_agents_stays_short():
    assert len((CLONE / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 80
