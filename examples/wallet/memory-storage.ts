import { memoryStore } from 'open-payments-server'
import { memoryPeerBalances } from './peer-balances.js'
import { memoryRegisteredKeys } from './registered-keys.js'
import { memorySecrets } from './secrets.js'
import { memorySendingBook } from './sending-book.js'
import type { WalletStorage } from './storage.js'

/** Keeps everything in the memory of this process. */
export function memoryStorage(): WalletStorage {
  return {
    store: memoryStore(),
    secrets: memorySecrets(),
    sendings: memorySendingBook(),
    balances: memoryPeerBalances(),
    keys: memoryRegisteredKeys(),
    description: 'memory',
    close: async () => {},
  }
}
