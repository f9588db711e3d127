# Before `azd deploy`: refuse a package that would not start, or a schema on which the code does not run.
& (Join-Path $PSScriptRoot 'run.ps1') -Step deployable
exit $LASTEXITCODE
