// The workbook of docs/telemetry.md: it shows the metrics that the app sends. No alert needs it.

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Resource id of the workspace that has the metrics.')
@minLength(10)
@maxLength(400)
param workspaceId string

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(workspaceId, 'hubledger') // the name of a workbook is a GUID
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'Hubledger'
    category: 'workbook'
    sourceId: workspaceId
    serializedData: loadTextContent('../dashboards/workbook.json')
  }
}

@description('Name of the workbook.')
output name string = workbook.name
