"""All mutants, a module for each part of the product."""

from tests.mutants.tables import around, engines, ingest, ledger, letters, order, replay, stops, store

MUTANTS = (
    *ingest.MUTANTS,
    *stops.MUTANTS,
    *letters.MUTANTS,
    *order.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *around.MUTANTS,
)
