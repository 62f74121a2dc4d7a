import { json, noContent, type Serve, unsigned } from '../pipeline.js'

export interface DiscoveryOptions {
  /** The grant endpoint as it is published. */
  readonly grantEndpoint: string
  /** Whether resource owners can be named to client instances. */
  readonly namesSubjects: boolean
}

const headers = { allow: 'POST, OPTIONS' }

/**
 * `OPTIONS {grantEndpoint}` (RFC 9635 section 9): what the authorization server supports, and nothing that it
 * does not. A preflight request of CORS is no question of GNAP, and gets no content.
 */
export function discover({ grantEndpoint, namesSubjects }: DiscoveryOptions): Serve {
  const supported = json(200, {
    grant_request_endpoint: grantEndpoint,
    interaction_start_modes_supported: ['redirect'],
    interaction_finish_methods_supported: ['redirect'],
    key_proofs_supported: ['httpsig'],
    ...(namesSubjects ? { sub_id_formats_supported: ['uri'] } : {}),
  })
  return unsigned(async ({ message }) => {
    const answer = message.fields.has('access-control-request-method') ? noContent : supported
    return { ...answer, headers: { ...answer.headers, ...headers } }
  })
}
