# After `azd deploy`: run the smoke tests with an event that is really sent, and print the address of the page.
& (Join-Path $PSScriptRoot 'run.ps1') -Step deployed
exit $LASTEXITCODE
