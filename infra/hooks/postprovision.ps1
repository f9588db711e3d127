# After `azd provision`: migrate the database, admit its users, upload the jobs, assign the Spark role, write local settings.
& (Join-Path $PSScriptRoot 'run.ps1') -Step provisioned
exit $LASTEXITCODE
