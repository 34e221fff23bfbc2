"""Placeholder until the query layer lands in the next commit."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_nb.core.types import SearchResult
from hermes_nb.store.database import Database
from hermes_nb.store.people import People


class Search:
    """Search over visible rows."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user

    def search(
        self, query: str, limit: int, sort: str, sources: Sequence[str] | None, user: str | None, *,
        session: str | None, exclude_root: str | None, roles: Sequence[str] | None,
    ) -> SearchResult:  # fmt: skip
        return SearchResult(())
