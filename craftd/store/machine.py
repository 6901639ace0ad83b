"""What the credential file is bound to: the machine, and the person on it.  App 0.11.1."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from attrs import frozen

ID_FILES: Final = (Path("/var/lib/dbus/machine-id"), Path("/etc/machine-id"))
"""The first that exists counts, even when it is blank."""


@frozen(kw_only=True)
class Machine:
    """ids: stable machine ids, the one the app takes first; none where the system has none. home: as in `$HOME`."""

    ids: tuple[str, ...]
    host: str
    user: str
    home: str

    @classmethod
    def here(cls) -> Machine:
        try:
            person = pwd.getpwuid(os.getuid())
            user, home = person.pw_name, person.pw_dir
        except KeyError:  # in a container: the app has no key there
            user, home = str(os.getuid()), "/"
        return cls(
            ids=_apple_ids() if sys.platform == "darwin" else _linux_ids(ID_FILES),
            host=socket.gethostname(),
            user=user,  # not `$USER`, which is anybody's word
            home=os.environ.get("HOME") or home,
        )


def _linux_ids(files: tuple[Path, ...]) -> tuple[str, ...]:
    found = []
    for path in files:
        try:
            found.append(path.read_text().strip())
        except (OSError, ValueError):
            continue
    return tuple(dict.fromkeys(found))


def _apple_ids() -> tuple[str, ...]:
    command = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError, ValueError):
        return ()
    quoted = said.partition('"IOPlatformUUID" = "')[2].partition('"')[0]
    return (quoted,) if quoted else ()
