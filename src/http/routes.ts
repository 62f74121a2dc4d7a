import { ok, type Result } from '../core/result.js'
import type { ServerOperation } from './operations.js'

/**
 * The route of an operation. `path` is relative to the server's URL; in it, `{id}` matches one segment and
 * `{path}` any number of segments.
 */
export interface ServerRoute {
  readonly operation: ServerOperation
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
  readonly path: string
}

export type RouteMatch = Result<
  { readonly route: ServerRoute; readonly id: string },
  | { readonly ok: false; readonly refusal: 'route_unknown' }
  | { readonly ok: false; readonly refusal: 'method_unknown'; readonly allow: string }
>

/**
 * Finds the route of a request. HEAD is routed like GET (RFC 9110 section 9.3.2). One trailing slash is
 * ignored, because some clients append one to the URLs that they received.
 */
export function matchRoute(
  routes: readonly ServerRoute[],
  method: string,
  target: string,
): RouteMatch {
  const path = target.endsWith('/') ? target.slice(0, -1) : target
  const here = routes.filter((route) => idIn(route.path, path) !== undefined)
  if (here.length === 0) return { ok: false, refusal: 'route_unknown' }
  const effective = method === 'HEAD' ? 'GET' : method
  const route = here.find((candidate) => candidate.method === effective)
  if (route === undefined) {
    const methods = new Set<string>(here.map((candidate) => candidate.method))
    if (methods.has('GET')) methods.add('HEAD')
    return { ok: false, refusal: 'method_unknown', allow: [...methods].join(', ') }
  }
  return ok({ route, id: idIn(route.path, path) ?? '' })
}

/** Returns the text that the braces match, `''` for a pattern without braces, `undefined` without a match. */
function idIn(pattern: string, path: string): string | undefined {
  const [before = '', braces, after = ''] = pattern.split(/(\{id\}|\{path\})/)
  if (braces === undefined) return path === pattern ? '' : undefined
  if (path.length < before.length + after.length) return undefined
  if (!path.startsWith(before) || !path.endsWith(after)) return undefined
  const id = path.slice(before.length, path.length - after.length)
  if (braces === '{path}') return id
  return id === '' || id.includes('/') ? undefined : id
}
