# Before `azd deploy`: refuse what would not start.
& (Join-Path $PSScriptRoot 'run.ps1') -Step deployable
exit $LASTEXITCODE
