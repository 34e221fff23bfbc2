"""How much of a request the endpoint has read before, measured on the raw bodies as they are sent.

Keeps digests of the last body's blocks, never the body: sessions may have megabytes. Must not know what a body says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_BLOCK = 1024
_END = len(b"]}")


@dataclass(slots=True)
class Trail:
    """The last body that went to one endpoint in one lineage."""

    _length: int = 0
    _blocks: list[int] = field(default_factory=list[int])
    _rest: int = 0

    def measure(self, body: bytes) -> float | None:
        """Return which share of the last body, without its closing ``]}``, begins this one; None for the first.

        1.0 is exact; a smaller share is known to within a kilobyte.
        """
        view = memoryview(body)[:-_END]
        length, blocks = self._length, self._blocks
        rest = self._rest
        whole = len(view) // _BLOCK
        # hash() of bytes is keyed anew in each process; what is compared here never leaves it.
        self._blocks = [hash(view[at * _BLOCK : (at + 1) * _BLOCK]) for at in range(whole)]
        self._rest = hash(view[whole * _BLOCK :])
        self._length = len(view)
        if not length:
            return None
        same = 0
        for old, new in zip(blocks, self._blocks, strict=False):
            if old != new:
                break
            same += 1
        if same == len(blocks) and hash(view[same * _BLOCK : length]) == rest and len(view) >= length:
            return 1.0
        return same * _BLOCK / length
