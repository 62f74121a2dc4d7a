// #region conformance
import { test } from 'node:test'
import { serverConformance } from 'open-payments-doctor'

const walletAddress = 'https://wallet.example/test-account'
for (const { name, level, run, timeoutMs } of serverConformance({ walletAddress })) {
  test(name, { timeout: timeoutMs, todo: level === 'recommended' }, run)
}
// #endregion conformance
