"""Which process holds something, and whether it still lives. Knows no table.

A holder is ``host/boot/pid/start``. ``host`` includes the pid namespace, so that a container never judges the
processes of its host by their numbers. Same host, other boot: dead. Other host: nobody here can know.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from hermes_nb.core.ids import boot_id


@cache
def host_id() -> str:
    """Return this host's name with its pid namespace where the system has such things."""
    try:
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")  # noqa: PTH115 - the link's text is no path
    except OSError:
        space = ""
    return f"{platform.node()}.{space}".replace("/", "-")


def this_process() -> str:
    """Return the holder string of this process."""
    return f"{host_id()}/{boot_id()}/{os.getpid()}/{_start(os.getpid()) or ''}"


def is_dead(holder: str) -> bool:
    """Whether the holder is a process of this host that is certainly gone."""
    host, boot, pid, start = [*holder.split("/"), "", "", "", ""][:4]
    if host != host_id():
        return False
    if boot != boot_id():
        return True
    if not pid.isdecimal():
        return False
    now = _start(int(pid))
    return now is None or (start != "" and now != "" and now != start)


def describe(holder: str) -> str:
    """Return words for messages to the user, e.g. ``process 4711 on this machine``."""
    host, _, pid, _ = [*holder.split("/"), "", "", "", ""][:4]
    if pid == str(os.getpid()) and host == host_id():
        return "this process"
    where = "this machine" if host == host_id() else host.split(".")[0]
    return f"process {pid} on {where}"


def _start(pid: int) -> str | None:
    """Return the start time of a process as the system counts it, "" if it cannot be told, None if it is gone."""
    if os.name == "nt":
        return ""
    try:
        # Field 2 may hold blanks and brackets: count behind its last bracket.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        return ""
    else:
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""
