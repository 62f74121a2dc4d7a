import { hashText } from '../../util/hash.js'

/** Returns the name of the list of a client's grants, including requests that are not decided. */
export function clientListName(namespace: string, client: string): string {
  return `${namespace} client ${client}`
}

/**
 * Returns the name of the list of an owner's grants, of either kind of record. The owner's identifier can be any
 * well-formed text, so it is hashed to a fixed length.
 */
export async function ownerListName(namespace: string, resourceOwner: string): Promise<string> {
  return `${namespace} owner ${await hashText(resourceOwner)}`
}
