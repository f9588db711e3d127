"""The stores that operators read, together."""

from core.audit.store import AuditStore
from core.ledger.explain import Explanations
from core.ledger.store import BurnDowns, Ledger
from core.letters.listing import LetterListing
from core.model.events import Stream
from core.purge.store import Purges
from core.store.database import Database, OneStream
from core.tasks.store import Tasks


class OperatorStores:
    """The stores of the operator's part of an app, over a stream whose events become rows of these classes."""

    def __init__(self, database: Database, of: Stream, row_classes: tuple[type, ...]) -> None:
        self.stream = OneStream(database, of)
        self.ledger, self.letters = Ledger(self.stream), LetterListing(self.stream)
        self.audits = AuditStore(self.stream, row_classes)
        self.explanations = Explanations(self.stream, row_classes)
        self.tasks, self.purges, self.burn_downs = Tasks(database), Purges(self.stream), BurnDowns(self.stream)


operator_stores = OperatorStores
