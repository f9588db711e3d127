"""All mutants, a module for each part of the product."""

from tests.mutants.tables import around, engines, held, ingest, journal, ledger, letters, order, replay, stops, store

MUTANTS = (
    *ingest.MUTANTS,
    *journal.MUTANTS,
    *stops.MUTANTS,
    *letters.MUTANTS,
    *held.MUTANTS,
    *order.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *around.MUTANTS,
)
