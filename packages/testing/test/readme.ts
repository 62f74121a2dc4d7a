// #region store
import { test } from 'node:test'
import { memoryStore } from 'open-payments-server'
import { storeConformance } from 'open-payments-server-testing'

// Pass your own store in the place of `memoryStore()`.
for (const { name, run, timeoutMs } of storeConformance(() => memoryStore())) {
  test(name, { timeout: timeoutMs }, run)
}
// #endregion store
