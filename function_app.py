"""Table of contents: every trigger of the app, one blueprint a module. No logic lives here."""

import azure.functions as func

from handlers import aggregation, api, dead_letters, gaps, ingest, lake, tasks, watch

app = func.FunctionApp()
for module in (ingest, gaps, watch, dead_letters, tasks, aggregation, lake, api):
    app.register_functions(module.bp)
