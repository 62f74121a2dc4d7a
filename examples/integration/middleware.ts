import cors from 'cors'
import express, { type RequestHandler } from 'express'
import helmet from 'helmet'
import type { InteractionView } from 'open-payments-server'
import type { NodeHandler } from 'open-payments-server/express'

// #region helmet
/** Lets the consent form lead to the client: `form-action` applies to redirects too. */
export function allowReturn({ finishUri }: InteractionView): RequestHandler {
  const { protocol, origin } = new URL(finishUri ?? 'https://unused.invalid')
  const isWeb = /^https?:$/.test(protocol) // an app has a scheme of its own
  const client = finishUri === undefined ? [] : [isWeb ? origin : protocol]
  const formAction = ["'self'", ...client]
  return helmet.contentSecurityPolicy({ directives: { formAction } })
}
// #endregion helmet

// #region cors
const crossOrigin = cors() // with your own options

/** Answers preflights, and leaves discovery, other OPTIONS requests, to the servers. */
export const corsBeforeServers: RequestHandler = (request, response, next) => {
  const isPreflight = request.headers['access-control-request-method'] !== undefined
  if (request.method === 'OPTIONS' && !isPreflight) next()
  else crossOrigin(request, response, next)
}
// #endregion cors

// #region raw-body
/** Parses JSON, and keeps the bytes that clients signed. */
export const jsonBeforeServers = express.json({
  verify(request, _response, rawBody) {
    Object.assign(request, { rawBody })
  },
})
// #endregion raw-body

// #region brands
/** Serves each brand at its own host, such as `alpha.example` or `localhost:3001`. */
export function byHost(brands: ReadonlyMap<string, NodeHandler>): RequestHandler {
  return (request, response, next) => {
    const serve = brands.get(request.host) ?? brands.get(request.hostname)
    if (serve === undefined) next()
    else serve(request, response, next)
  }
}
// #endregion brands
