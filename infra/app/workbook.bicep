// The workbook of docs/telemetry.md: it shows the metrics that the app sends. No alert needs it.

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Resource id of the workspace that has the metrics.')
param workspaceId string

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(workspaceId, 'hubledger') // the name of a workbook is a GUID
  location: common.location
  tags: common.tags
  kind: 'shared'
  properties: {
    displayName: 'Hubledger'
    category: 'workbook'
    sourceId: workspaceId
    serializedData: loadTextContent('../dashboards/workbook.json')
  }
}
