import type { MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'

// #region cors
const crossOrigin = cors() // with your own options

/** Answers preflights, and leaves discovery, other OPTIONS requests, to the servers. */
export const corsBeforeServers: MiddlewareHandler = (context, next) => {
  const { method, raw } = context.req
  const isPreflight = raw.headers.has('access-control-request-method')
  return method === 'OPTIONS' && !isPreflight ? next() : crossOrigin(context, next)
}
// #endregion cors
