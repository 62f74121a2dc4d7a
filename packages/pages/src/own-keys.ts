import { type ClientKeyId, displayName } from 'open-payments-server'
import type { OwnKey } from './app-name.js'
import { type OwnedKey, type OwnerKeys, thumbprintOf } from './keys.js'
import { isSameUrl, type OwnedAccount } from './owned-account.js'

/** A client, and the key that signed. */
export interface SigningApp {
  readonly client: string
  readonly clientKey?: ClientKeyId | undefined
}

/** Finds the key of the owner with which an app signs; `undefined` if its address is no account of the owner. */
export type OwnKeyOf = (app: SigningApp) => Promise<OwnKey | undefined>

/**
 * Returns a function that finds the owner's keys, with one look-up for each account. It compares thumbprints: an app
 * that hands a key over chooses the `kid`, which can be that of a key that was revoked.
 */
export function ownKeysOf(
  accounts: readonly OwnedAccount[],
  keys: Pick<OwnerKeys, 'of'> | undefined,
): OwnKeyOf {
  const found = new Map<string, Promise<ReadonlyMap<string, OwnedKey>>>()

  function keysOf(url: string): Promise<ReadonlyMap<string, OwnedKey>> {
    const known = found.get(url) ?? byThumbprint(keys === undefined ? [] : keys.of(url))
    found.set(url, known)
    return known
  }

  return async ({ client, clientKey }) => {
    const account = accounts.find(({ url }) => isSameUrl(url, client))
    if (account === undefined) return undefined
    if (clientKey === undefined) return {}
    const key = (await keysOf(account.url)).get(clientKey.thumbprint)
    const name = displayName(key?.name)
    return { kid: clientKey.kid, ...(name !== undefined && { name }) }
  }
}

async function byThumbprint(
  keys: readonly OwnedKey[] | Promise<readonly OwnedKey[]>,
): Promise<ReadonlyMap<string, OwnedKey>> {
  const entries = (await keys).map(async (key) => [await thumbprintOf(key.x), key] as const)
  return new Map(await Promise.all(entries))
}
