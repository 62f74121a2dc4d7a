import cors from 'cors'
import express, { type RequestHandler, type Response } from 'express'
import helmet from 'helmet'
import type { NodeHandler } from 'open-payments-server/express'

// #region helmet
/** Lets the consent form lead to the client, and on from there. */
export const allowReturn = helmet.contentSecurityPolicy({
  directives: {
    formAction: ["'self'", 'https:', 'http://localhost:*', 'http://127.0.0.1:*'],
  },
})

/** Leads the browser to the client: by a redirect, or by a link where none arrives. */
export function leadBack(response: Response, redirect: string): void {
  const { protocol, hostname } = new URL(redirect)
  const isLocal = protocol === 'http:' && /^(?:localhost|127\.0\.0\.1)$/.test(hostname)
  const href = redirect.replace(/[&"<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  if (protocol === 'https:' || isLocal) response.redirect(303, redirect)
  else response.send(`<p><a href="${href}">Back to the app</a></p>`)
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
