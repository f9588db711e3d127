"""All mutants, a module for each part of the product."""

from tests.mutants.tables import around, engines, ingest, ledger, letters, replay, store

MUTANTS = (
    *ingest.MUTANTS,
    *letters.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *around.MUTANTS,
)
