"""Table of contents: every trigger of the app, one blueprint a module. No logic lives here."""

import azure.functions as func

from handlers import aggregation, api, audits, dead_letters, gaps, ingest, lake, purges, redrives, replays, watch

app = func.FunctionApp()
for module in (ingest, gaps, watch, dead_letters, redrives, replays, audits, purges, aggregation, lake, api):
    app.register_functions(module.bp)
