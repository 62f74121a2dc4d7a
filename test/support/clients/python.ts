import { close, common, type Dialect, line, methodAndTarget } from './dialect.js'
import { withDigits } from './instants.js'
import { jsonWriter } from './json.js'
import { percentEncoded } from './queries.js'

/** httpx and pydantic. A member without a value is `null`, and a list names its parameter `walletAddress`. */
export const python: Dialect = {
  ...common,
  name: 'Python',
  json: jsonWriter({ absent: 'null' }),
  instant: (nanoseconds) => withDigits(nanoseconds, 6, '+00:00'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/).replaceAll('%20', '+'),
  listParameters: (walletAddress) => [
    ['walletAddress', walletAddress],
    ['cursor', ''],
    ['first', '10'],
    ['last', ''],
  ],
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    ['Accept', '*/*'],
    ['Accept-Encoding', 'gzip, deflate'],
    close,
    ['User-Agent', 'python-httpx/0.28.1'],
    ...line('Content-Type', content && 'application/json'),
    ...line('Authorization', authorization),
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
    ...line('Content-Digest', content?.digest),
    ['Signature-Input', signature.input],
    ['Signature', signature.value],
  ],
  covers: ({ authorization, content }) => [
    ...(content === undefined ? [] : ['content-type', 'content-digest', 'content-length']),
    ...(authorization === undefined ? [] : ['authorization']),
    ...methodAndTarget,
  ],
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}
