export { accounts, paymentDetailsKey, store } from '../../../examples/integration/host.js'
export {
  allowReturn,
  corsBeforeServers,
  jsonBeforeServers,
} from '../../../examples/integration/middleware.js'
export { app } from '../../../examples/integration/server.js'
