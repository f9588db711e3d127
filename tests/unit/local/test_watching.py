"""local/watching.py"""

import threading

from local.books import Books, BooksUnavailable
from local.watching import Watch

BOOKS = Books(in_hub=3, accounted=3, written=3, filtered=0, dead_lettered=0, balanced=True)


class App:
    """Answers what it is told to, and says when it has been asked so often."""

    def __init__(self, *answers: Books | None) -> None:
        self._answers = list(answers)
        self.addresses: list[str] = []
        self.finished = threading.Event()

    def read(self, address: str) -> Books:
        self.addresses.append(address)
        if not self._answers:
            self.finished.set()
            threading.Event().wait(0.01)
            raise BooksUnavailable("it has gone")
        answer = self._answers.pop(0)
        if answer is None:
            raise BooksUnavailable("not yet")
        return answer


def test_the_latest_answer_stays_when_the_app_falls_silent() -> None:
    app = App(None, BOOKS)
    with Watch("http://one", app.read, every=0.001) as watch:
        assert app.finished.wait(10)
        assert watch.books == BOOKS


def test_another_address_is_asked_and_the_answer_of_the_first_counts_no_more() -> None:
    asked, answered = threading.Event(), threading.Event()

    def read(address: str) -> Books:
        if address == "http://two":
            asked.set()
            raise BooksUnavailable("not yet")
        answered.set()
        return BOOKS

    with Watch("http://one", read, every=0.001) as watch:
        assert answered.wait(10)
        watch.move("http://two")
        assert asked.wait(10)
        assert watch.books is None
