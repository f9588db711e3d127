// Telemetry: one workspace, and Application Insights, which accepts telemetry from Entra identities only.

@description('Name of the workspace.')
@minLength(4)
@maxLength(63)
param workspaceName string

@description('Name of the Application Insights component.')
@minLength(1)
@maxLength(255)
param componentName string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Days for which logs are stored.')
@minValue(30)
@maxValue(730)
param retentionDays int

@description('Gigabytes a day after which the workspace takes in no logs until the next day, and the alerts see no new lines; -1 for no limit.')
@minValue(-1)
@maxValue(1000)
param dailyGigabytes int

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: retentionDays
    workspaceCapping: { dailyQuotaGb: dailyGigabytes }
    features: { disableLocalAuth: true, enableLogAccessUsingOnlyResourcePermissions: true }
  }
}

resource component 'Microsoft.Insights/components@2020-02-02' = {
  name: componentName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    DisableLocalAuth: true
    IngestionMode: 'LogAnalytics'
    SamplingPercentage: 100 // ingestion drops none of the facts that alerts read
    WorkspaceResourceId: workspace.id
  }
}

@description('Resource id of the workspace that the alerts query.')
output workspaceId string = workspace.id

@description('Name of the component.')
output componentName string = component.name

@description('Connection string for telemetry. It names the component and gives no access: local authentication is off.')
output connectionString string = component.properties.ConnectionString
