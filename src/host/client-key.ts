import type { ClientKeyId, GrantClient } from '../core/grant/record.js'

/** Returns what tells the key that signed for a grant from the other keys of its client. */
export function clientKeyOf({ client }: { readonly client: Omit<GrantClient, 'x'> }): ClientKeyId {
  const { kid, thumbprint } = client
  return { kid, thumbprint }
}
