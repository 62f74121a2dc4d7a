import { memoryStore } from 'open-payments-server'
import { memoryPeerBalances } from '../ilp/peer-balances.js'
import { memorySendingBook } from '../ilp/sending-book.js'
import { memoryRegisteredKeys } from './registered-keys.js'
import { memorySecrets } from './secrets.js'
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
