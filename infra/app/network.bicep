// A virtual network for the app's outgoing calls. It costs nothing, and the database admits its subnets in place of all of Azure.

@description('Name of the network.')
param name string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Address space of the network, at least a /24.')
param addressPrefix string

var appSubnet = 'app'
var endpointSubnet = 'endpoints'
var workerSubnet = 'worker' // Container Apps and Flex Consumption cannot share one

module network 'br/public:avm/res/network/virtual-network:0.7.1' = {
  name: '${deployment().name}-virtual'
  params: {
    name: name
    location: common.location
    tags: common.tags
    enableTelemetry: false
    addressPrefixes: [addressPrefix]
    subnets: [
      { name: appSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 0), delegation: 'Microsoft.App/environments', serviceEndpoints: ['Microsoft.Sql'] }
      { name: endpointSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 1) }
      { name: workerSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 2), delegation: 'Microsoft.App/environments', serviceEndpoints: ['Microsoft.Sql'] }
    ]
  }
}

@description('Resource id of the subnet for the app.')
output appSubnetId string = '${network.outputs.resourceId}/subnets/${appSubnet}'

@description('Resource id of the subnet for the worker.')
output workerSubnetId string = '${network.outputs.resourceId}/subnets/${workerSubnet}'

@description('Resource id of the subnet for private endpoints.')
output endpointSubnetId string = '${network.outputs.resourceId}/subnets/${endpointSubnet}'

@description('Resource id of the network.')
output resourceId string = network.outputs.resourceId
