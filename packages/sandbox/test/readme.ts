// #region start
import { startSandbox } from 'open-payments-sandbox'

const sandbox = await startSandbox({ port: 0, approve: ['all'] })
const { walletAddress, keyId, privateKeyPem } = sandbox.account('app')
// … your client acts for `walletAddress`, and pays from alice to dana.
sandbox.fault({ fault: 'lost-response', operation: 'createOutgoingPayment' })
await sandbox.advance('P1D')
const refused = sandbox.requests().filter(({ status = 0 }) => status >= 400)
await sandbox.stop()

// #endregion start

export { keyId, privateKeyPem, refused, walletAddress }
