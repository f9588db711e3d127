// Telemetry: one workspace, Application Insights, which accepts telemetry from Entra identities only, and a workbook.

@description('Name of the workspace.')
param workspaceName string

@description('Name of the Application Insights component.')
param componentName string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Days for which logs are stored.')
param retentionDays int

@description('Gigabytes a day after which the workspace takes in no logs until the next day, and the alerts see no new lines; -1 for no limit.')
param dailyGigabytes int

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: workspaceName
  location: common.location
  tags: common.tags
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: retentionDays
    workspaceCapping: { dailyQuotaGb: dailyGigabytes }
    features: { disableLocalAuth: true, enableLogAccessUsingOnlyResourcePermissions: true }
  }
}

resource component 'Microsoft.Insights/components@2020-02-02' = {
  name: componentName
  location: common.location
  tags: common.tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    DisableLocalAuth: true
    IngestionMode: 'LogAnalytics'
    SamplingPercentage: 100 // ingestion drops none of the facts that alerts read
    WorkspaceResourceId: workspace.id
  }
}

// docs/telemetry.md: it shows the metrics that the app sends. No alert needs it.
resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(workspace.id, 'hubledger') // the name of a workbook is a GUID
  location: common.location
  tags: common.tags
  kind: 'shared'
  properties: {
    displayName: 'Hubledger'
    category: 'workbook'
    sourceId: workspace.id
    serializedData: loadTextContent('../dashboards/workbook.json')
  }
}

@description('Resource id of the workspace that the alerts query.')
output workspaceId string = workspace.id

@description('Name of the component.')
output componentName string = component.name

@description('Connection string for telemetry. It names the component and gives no access: local authentication is off.')
output connectionString string = component.properties.ConnectionString
