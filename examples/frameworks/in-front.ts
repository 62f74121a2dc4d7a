// #region in-front
import { createServer } from 'node:http'
import { type NodeHandler, toExpress } from 'open-payments-server/express'
import { createWallet } from './wallet.js'

/** Serves a wallet in front of an application. */
export function serveInFront(application: NodeHandler, port: number) {
  const { handle } = createWallet(`http://localhost:${port}`)
  const wallet = toExpress(handle, { fallthrough: true })
  const server = createServer((request, response) => {
    wallet(request, response, () => application(request, response))
  })
  return server.listen(port)
}
// #endregion in-front
