"""All mutants, a module for each part of the product."""

from tests.mutants.tables import (
    around,
    engines,
    held,
    ingest,
    journal,
    ledger,
    letters,
    pipeline,
    replay,
    stops,
    store,
    tasks,
    values,
)

MUTANTS = (
    *ingest.MUTANTS,
    *journal.MUTANTS,
    *stops.MUTANTS,
    *letters.MUTANTS,
    *held.MUTANTS,
    *tasks.MUTANTS,
    *values.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *pipeline.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *around.MUTANTS,
)
