// The Spark engine of the aggregation: none, a Synapse pool, or a Databricks workspace.

@description('Spark engine. This template sets up Synapse completely; a Databricks workspace still needs the app as a service principal and access to the lake, which are set up inside it.')
param engine 'none' | 'synapse' | 'databricks'

@description('Name of the Synapse workspace.')
param synapseName string

@description('Name of the Databricks workspace.')
param databricksName string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('The lake: its address (dfs), its resource id, and its container that holds jobs and results.')
param lake { endpoint: string, id: string, container: string }

@description('Object id of the deployer, the first Synapse administrator: only an administrator may give the app its role in the workspace.')
param deployerPrincipalId string

@description('Nodes of the pool: the size of one, of which Small has 4 cores and 32 GB, and the limit of their number.')
param nodes { size: 'Small' | 'Medium' | 'Large', maximum: int }

var poolName = 'spark35'

resource synapse 'Microsoft.Synapse/workspaces@2021-06-01' = if (engine == 'synapse') {
  name: synapseName
  location: common.location
  tags: common.tags
  identity: { type: 'SystemAssigned' }
  properties: {
    azureADOnlyAuthentication: true // so there is no sqlAdministratorLogin: nobody could sign in with it
    cspWorkspaceAdminProperties: { initialWorkspaceAdminObjectId: deployerPrincipalId }
    defaultDataLakeStorage: { accountUrl: lake.endpoint, filesystem: lake.container, resourceId: lake.id }
    publicNetworkAccess: 'Enabled'
  }
}

// A workspace without a firewall rule refuses every request. This one admits other Azure services, which still need a token;
// the hook that gives the app its role in the workspace makes one for its own time.
resource fromAzure 'Microsoft.Synapse/workspaces/firewallRules@2021-06-01' = if (engine == 'synapse') {
  parent: synapse
  name: 'AllowAllWindowsAzureIps'
  properties: { startIpAddress: '0.0.0.0', endIpAddress: '0.0.0.0' }
}

resource pool 'Microsoft.Synapse/workspaces/bigDataPools@2021-06-01' = if (engine == 'synapse') {
  parent: synapse
  name: poolName
  location: common.location
  tags: common.tags
  properties: {
    sparkVersion: '3.5'
    nodeSize: nodes.size
    nodeSizeFamily: 'MemoryOptimized'
    autoScale: { enabled: true, minNodeCount: 3, maxNodeCount: nodes.maximum }
    autoPause: { enabled: true, delayInMinutes: 5 }
  }
}

module databricks 'br/public:avm/res/databricks/workspace:0.11.4' = if (engine == 'databricks') {
  name: '${deployment().name}-databricks'
  params: {
    name: databricksName
    location: common.location
    tags: common.tags
    skuName: 'premium'
    disablePublicIp: true
    enableTelemetry: false
  }
}

@description('Name of the Synapse workspace; empty when there is none.')
output synapseName string = engine == 'synapse' ? synapse.name : ''

@description('Object id of the workspace itself, which reads and writes the lake; empty when there is none.')
output synapsePrincipalId string = engine == 'synapse' ? synapse!.identity.principalId : ''

@description('Name of the Spark pool; empty when there is none.')
output poolName string = engine == 'synapse' ? poolName : ''

@description('Address that takes jobs: Livy of the pool, or the Databricks workspace; empty without an engine.')
output submitEndpoint string = engine == 'synapse'
  ? 'https://${synapse.name}.dev.azuresynapse.net/livyApi/versions/2019-11-01-preview/sparkPools/${poolName}'
  : engine == 'databricks' ? 'https://${databricks!.outputs.workspaceUrl}' : ''
