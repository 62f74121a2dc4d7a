import type { Serve } from '../exchange.js'
import type { grantRoutes, introspectionRoutes } from '../routes.js'
import {
  cancelGrant,
  continueGrant,
  discover,
  type GrantDependencies,
  requestGrant,
  revokeToken,
  rotateToken,
} from './grant.js'
import { type IntrospectionDependencies, introspectToken } from './introspection.js'

/** The operations of `grantRoutes`: what the pipeline calls once it has matched the route. */
export function grantOperations(deps: GrantDependencies) {
  return {
    requestGrant: requestGrant(deps),
    discover: discover(deps),
    continueGrant: continueGrant(deps),
    cancelGrant: cancelGrant(deps),
    rotateToken: rotateToken(deps),
    revokeToken: revokeToken(deps),
  } satisfies Record<(typeof grantRoutes)[number]['operation'], Serve>
}

export function introspectionOperations(deps: IntrospectionDependencies) {
  return {
    introspectToken: introspectToken(deps),
  } satisfies Record<(typeof introspectionRoutes)[number]['operation'], Serve>
}
