"""What a process must be allowed to do."""

import os

from base.errors import EyelevelError


def require_root(activity: str) -> None:
    """Raises EyelevelError when this process cannot make network namespaces, which `activity` ("measuring") needs."""
    if os.geteuid() != 0:
        raise EyelevelError(f"{activity} needs root, to make network namespaces; run it as root or with sudo")
