"""All mutants, a module for each part of the product."""

from tests.mutants.tables import (
    around,
    demo,
    engines,
    held,
    ingest,
    journal,
    ledger,
    letters,
    levels,
    pipeline,
    replay,
    servers,
    shapes,
    stops,
    store,
    values,
)

MUTANTS = (
    *ingest.MUTANTS,
    *journal.MUTANTS,
    *stops.MUTANTS,
    *letters.MUTANTS,
    *held.MUTANTS,
    *values.MUTANTS,
    *replay.MUTANTS,
    *ledger.MUTANTS,
    *pipeline.MUTANTS,
    *levels.MUTANTS,
    *store.MUTANTS,
    *engines.MUTANTS,
    *servers.MUTANTS,
    *shapes.MUTANTS,
    *around.MUTANTS,
    *demo.MUTANTS,
)
