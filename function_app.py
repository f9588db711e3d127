"""Table of contents: every trigger of the app, one blueprint a module. No logic lives here."""

import azure.functions as func

from handlers import aggregation, dead_letters, gaps, homes, ingest, ledger, letters, ops, replays, status, watch

app = func.FunctionApp()
app.register_functions(ingest.bp)
app.register_functions(gaps.bp)
app.register_functions(watch.bp)
app.register_functions(dead_letters.bp)
app.register_functions(status.bp)
app.register_functions(ledger.bp)
app.register_functions(letters.bp)
app.register_functions(ops.bp)
app.register_functions(replays.bp)
app.register_functions(aggregation.bp)
app.register_functions(homes.bp)
