using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param sparkEngine = 'databricks'
param resourceNames = { resourceGroup: 'rg-mine', hostStorage: 'stmine1', lake: 'stmine2', functionApp: 'func-mine', sqlServer: 'sql-mine' }
