// Sign-in with Microsoft Entra (App Service authentication), on or off by parameter. It lets callers without a token
// pass, because monitors and the company's web site come with a key only; the app itself checks the role of a caller. The
// platform removes the headers of a principal from every request that comes from outside, and sets its own.

@description('Name of the function app.')
param appName string

@description('Client id of the app registration that callers sign in to; empty turns sign-in off.')
param clientId string

@description('Tenant whose people and programs may sign in; no other tenant is admitted.')
param tenantId string

var isOn = !empty(clientId)

resource app 'Microsoft.Web/sites@2024-04-01' existing = {
  name: appName
}

// No client secret: the registration issues id tokens, so nothing has to be stored or rotated.
resource signIn 'Microsoft.Web/sites/config@2024-04-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: isOn, runtimeVersion: '~1' }
    globalValidation: { requireAuthentication: false, unauthenticatedClientAction: 'AllowAnonymous' }
    httpSettings: { requireHttps: true, forwardProxy: { convention: 'NoProxy' } }
    identityProviders: {
      azureActiveDirectory: {
        enabled: isOn
        registration: {
          clientId: isOn ? clientId : null
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenantId}/v2.0'
        }
        validation: { allowedAudiences: isOn ? ['api://${clientId}'] : [] } // beside the client id itself
      }
    }
    login: {
      preserveUrlFragmentsForLogins: true // the operator's page has its places after the #
      tokenStore: { enabled: false }
    }
  }
}
