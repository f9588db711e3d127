# After `azd provision`: migrate the database, admit its users, upload the jobs, assign the Spark role, turn off passwords.
& (Join-Path $PSScriptRoot 'run.ps1') -Step provisioned
exit $LASTEXITCODE
