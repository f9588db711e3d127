# After `azd provision`: migrate the database, let the app in, upload the jobs, set the Spark role.
& (Join-Path $PSScriptRoot 'run.ps1') -Step provisioned
exit $LASTEXITCODE
