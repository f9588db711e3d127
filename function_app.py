"""Table of contents: every trigger of the app, one blueprint a module. No logic lives here."""

import azure.functions as func

from handlers import api, dead_letters, ingest, tasks, timers

app = func.FunctionApp()
for module in (ingest, timers, dead_letters, tasks, api):
    app.register_functions(module.bp)
