using '../../../infra/main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param principalId = '00000000-0000-0000-0000-00000000d000'
param eventHubNamespaceId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.EventHub/namespaces/evhns-theirs'
param eventHubName = 'orders'
param sqlServerId = '/subscriptions/00000000-0000-0000-0000-000000007e15/resourceGroups/rg-theirs/providers/Microsoft.Sql/servers/sql-theirs'
param sqlDatabase = 'shop'
