/*
 * The lines to change in the configuration of a proxy: of nginx, and of others where a line of theirs does the same.
 */

/** The proxy passes the target on as received. */
export const unchangedTarget: readonly string[] = [
  'proxy_pass http://127.0.0.1:3000;  # nginx: without a path, it passes the target on unchanged',
  'ProxyPass / http://127.0.0.1:3000/ nocanon  # Apache, with AllowEncodedSlashes NoDecode',
  '# HAProxy: no http-request normalize-uri. Caddy: no uri or handle_path below the path of the wallet.',
]

/** The proxy asks the wallet for each response. */
export const uncached: readonly string[] = [
  'proxy_cache off;  # nginx, in the locations of both servers; in a CDN, a rule that bypasses its cache',
  'return (pass);  # Varnish, in vcl_recv, and no beresp.ttl',
  'CacheDisable /  # Apache',
  '# HAProxy: no http-request cache-use. Caddy: no cache.',
  '# and no expires or add_header Cache-Control, which replace the header of the server',
]

/** The proxy sends each request once. */
export const sentOnce: readonly string[] = [
  'proxy_next_upstream off;  # nginx: no second attempt with the same request',
  'retry-on conn-failure  # HAProxy, the default',
  'transport http { keepalive off }  # Caddy, in reverse_proxy, and no lb_try_duration',
  'set bereq.http.Connection = "close";  # Varnish, in vcl_backend_fetch, and no return (retry)',
  '# and no retries for POST in a gateway or mesh, and one handler of the wallet for each path',
]

/** The proxy passes on the errors of the wallet. */
export const ownErrors: readonly string[] = [
  '# nginx: remove proxy_intercept_errors on and error_page for the paths of the wallet',
  'ProxyErrorOverride Off  # Apache',
  '# HAProxy: no http-response return. Caddy: no handle_response. Varnish: no return (synth).',
]

/** The proxy passes on the challenge of a 401. */
export const ownChallenge: readonly string[] = [
  '# nginx: remove proxy_hide_header WWW-Authenticate',
  '# Apache: remove Header unset; HAProxy: http-response del-header; Caddy: header_down; Varnish: unset',
]

/** The proxy accepts bodies of the size that the wallet accepts. */
export const bodySizes: readonly string[] = [
  'client_max_body_size 64k;  # nginx: the proxy refuses bodies of this size',
  'LimitRequestBody 65536  # Apache',
  'request_body { max_size 64KB }  # Caddy',
]

/** The proxy passes requests with this method on. */
export function passedMethod(method: string): string {
  return `# Allow ${method} in the proxy (nginx: limit_except; Apache: Limit; HAProxy: http-request deny), the firewall or the router.`
}

/** The lines that give a server the bytes that clients signed. */
export const keptBytes: readonly string[] = [
  '// or let the parser keep the bytes:',
  'express.json({ verify: (request, _response, buffer) => void Object.assign(request, { rawBody: buffer }) })',
]
