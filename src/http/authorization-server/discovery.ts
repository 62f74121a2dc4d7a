import { ok } from '../../core/decision.js'
import { json, noContent, type Serve, unsigned } from '../pipeline.js'

export interface DiscoveryOptions {
  /** The published URL of the grant endpoint. */
  readonly grantEndpoint: string
  /** Whether client instances can request a subject. */
  readonly namesSubjects: boolean
}

const headers = { allow: 'POST, OPTIONS' }

/**
 * `OPTIONS {grantEndpoint}` (RFC 9635 section 9): the features that the authorization server supports. A CORS
 * preflight request is not GNAP discovery, and gets no content.
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
    const preflight = message.fields.has('access-control-request-method')
    const { value } = preflight ? noContent : supported
    return ok({ ...value, headers: { ...value.headers, ...headers } })
  })
}
