import type { AccessType } from '../../core/access.js'
import type { Instant } from '../../core/instant.js'
import { json, refuse, type Serve } from '../pipeline.js'
import { authorized, insufficient, type ResourceDependencies } from './authorized.js'

/** A resource type with an operation that reads a single resource. */
interface Readable<Resource> {
  readonly type: AccessType
  load(id: string): Promise<Resource | undefined>
  /** Returns the response body for a resource. */
  toBody(resource: Resource, now: Instant): object | Promise<object>
}

/** Serves a resource to the client instance that created it, and to others whose token allows `read-all`. */
export function getResource<Resource extends { walletAddress: string; client?: string }>(
  deps: ResourceDependencies,
  { type, load, toBody }: Readable<Resource>,
): Serve {
  return authorized(deps, async ({ id, call }, { permitted, readable }) => {
    if (permitted(type, 'read') === undefined) return insufficient(type, 'read')
    const resource = await load(id)
    if (resource === undefined || !readable(type, resource)) {
      const reason = `the token can read no ${type} with this id`
      return refuse('resource_unknown', reason)
    }
    return json(200, await toBody(resource, call.now))
  })
}
