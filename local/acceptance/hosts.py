"""The hosts that an acceptance can have: one that runs at an address, Microsoft's, and ours."""

import os
import sys
import time
from pathlib import Path
from typing import Protocol

from local.functions_host.supervisor import free_port
from local.stack.app_totals import BooksUnavailable, read_books
from local.stack.processes import READY, Child, ChildFailed, Children, Command, Pause
from local.stack.stack import Stack, app_settings

DEATHS = 30  # of a host that is started again; each event that kills may cost several
FUNC = "local.acceptance.func_start"


class AnyHost(Protocol):
    """A host of the app. Its address may change when it is started again."""

    @property
    def address(self) -> str: ...

    def refuse_dead(self) -> None:
        """Start the host again when it has ended, as Azure does. Raises ChildFailed when that helps nothing."""


class Somewhere:
    """A host that somebody else has started, and starts again."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def refuse_dead(self) -> None:
        """Do nothing."""


class Func:
    """Microsoft's host with the app, over a storage account. After some deaths of its worker it ends: then a new one is
    started."""

    def __init__(self, stack: Stack, children: Children, storage: str, transform: str) -> None:
        self._pause = stack.pause
        self._children = children
        self._settings = {
            **app_settings(stack.connection, stack.place, transform),
            "AzureWebJobsStorage": storage,
            "FUNCTIONS_WORKER_RUNTIME": "python",
            "VIRTUAL_ENV": sys.prefix,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        port = free_port(0)
        self.address = f"http://localhost:{port}"
        self._words = ["--port", str(port)]
        self._starts = 0
        self._child = self._started()
        until_answered(self.address, self._child, self._pause)

    def refuse_dead(self) -> None:
        if self._child.running:
            return
        if self._starts > DEATHS:
            self._child.refuse_dead()
        print("the functions host has ended; starting it again", flush=True)
        self._child = self._started()

    def _started(self) -> Child:
        self._starts += 1
        return self._children.start(Command(f"func-{self._starts}", FUNC, self._words, self._settings))


def until_answered(address: str, child: Child, pause: Pause) -> None:
    """Return when the app answers with its status. Raises ChildFailed when it does not."""
    deadline = time.monotonic() + READY
    while True:
        child.refuse_dead()
        try:
            read_books(address)
        except BooksUnavailable as silence:
            if time.monotonic() > deadline:
                raise ChildFailed(f"{child.name} did not answer in {READY:g} s: {silence}\n{child.tail()}") from silence
        else:
            return
        pause(1.0)
