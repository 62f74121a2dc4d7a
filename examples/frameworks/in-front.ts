// #region in-front
import { createServer } from 'node:http'
import { type NodeHandler, toExpress } from 'open-payments-server/express'
import { createWallet } from './wallet.js'

/** Creates a server with a wallet at this port in front of an application. */
export function inFront(application: NodeHandler, port: number) {
  const { handle } = createWallet(`http://localhost:${port}`)
  const wallet = toExpress(handle, { fallthrough: true })
  return createServer((request, response) => {
    wallet(request, response, () => application(request, response))
  })
}
// #endregion in-front
