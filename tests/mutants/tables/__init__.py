"""All mutants, a module for each part of the product."""

from tests.mutants.tables import around, engines, held, ingest, ledger, letters, replay, stops, store

MUTANTS = (
    *ingest.MUTANTS,
    *stops.MUTANTS,
    *letters.MUTANTS,
    *held.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *around.MUTANTS,
)
