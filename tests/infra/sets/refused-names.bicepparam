using '../../../infra/main.bicep'

param environmentName = 'dev.'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param resourceNames = { hostStorage: 'stMine', functionApp: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', sqlServer: 'sql-Mine', containerApp: 'ccccccccccccccccccccccccccccccccc', virtualNetwork: 'vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv' }
