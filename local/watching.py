"""Ask for the books again and again in the background: an answer takes seconds when the host has much to do."""

import threading
from collections.abc import Callable
from types import TracebackType

from local.books import Books, BooksUnavailable, read_books

EVERY = 2.0  # seconds from one answer to the next question; the app asks the hub no more often either


class Watch:
    """Inside a `with` block, `books` is the latest answer of an address, None until it has answered."""

    def __init__(self, address: str, read: Callable[[str], Books] = read_books, every: float = EVERY) -> None:
        self._address = address
        self._read = read
        self._every = every
        self._ended = threading.Event()
        self.books: Books | None = None
        self.silence = ""

    def __enter__(self) -> "Watch":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """A question that is still open is left alone."""
        self._ended.set()

    def move(self, address: str) -> None:
        """Ask somebody else from now on; what the one before said counts no more."""
        self._address, self.books = address, None

    def _watch(self) -> None:
        while not self._ended.is_set():
            address = self._address
            try:
                books, silence = self._read(address), ""
            except BooksUnavailable as error:
                books, silence = None, str(error)
            if address == self._address:
                self.books, self.silence = books or self.books, silence
            self._ended.wait(self._every if books else 0.2)
