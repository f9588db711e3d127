"""The stores that operators read, together."""

from dataclasses import dataclass

from core.audit.store import AuditStore
from core.ledger.explain import Explanations
from core.ledger.store import BurnDowns, Ledger
from core.letters.listing import LetterListing
from core.model.events import Stream
from core.purge.store import Purges
from core.store.database import Database, OneStream
from core.tasks.store import Tasks


@dataclass(frozen=True, slots=True)
class OperatorStores:
    """The stores of the operator's part of an app."""

    stream: OneStream
    ledger: Ledger
    audits: AuditStore
    letters: LetterListing
    explanations: Explanations
    tasks: Tasks
    purges: Purges
    burn_downs: BurnDowns


def operator_stores(database: Database, of: Stream, row_classes: tuple[type, ...]) -> OperatorStores:
    """Return the stores of a stream whose events become rows of these classes."""
    stream = OneStream(database, of)
    explanations = Explanations(stream, row_classes)
    letters, ledger = LetterListing(stream), Ledger(stream)
    tasks, purges, burn_downs = Tasks(database), Purges(stream), BurnDowns(stream)
    return OperatorStores(
        stream, ledger, AuditStore(stream, row_classes), letters, explanations, tasks, purges, burn_downs
    )
