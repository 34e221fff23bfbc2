"""Where a file lies: tells network file systems by their type. Knows nothing of SQLite."""

from __future__ import annotations

from pathlib import Path

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "beegfs", "gpfs"}
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.blobfuse2", "fuse.ceph"}
)


def _unescape(name: str) -> str:
    return name.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def file_system_type(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """Return the type of the file system that holds ``path``, or None where the system has no such table."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, found = -1, None
    target = path.resolve()
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescape(fields[1]))
        # A later line for the same folder covers the earlier one.
        if target.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), fields[2]
    return found


def is_network(path: Path) -> bool:
    """Whether ``path`` lies on a file system where SQLite's shared memory does not work across hosts."""
    return file_system_type(path) in _NETWORK
