import {
  close,
  common,
  contentFields,
  covering,
  type Dialect,
  line,
  methodAndTarget,
} from './dialect.js'
import { upToDigits } from './instants.js'
import { escaping, jsonWriter } from './json.js'
import { percentEncoded } from './queries.js'

/** `json.Marshal`, `url.QueryEscape` and the transport of `net/http`, which sorts header fields by name. */
export const go: Dialect = {
  ...common,
  name: 'Go',
  json: jsonWriter({ text: escaping(/[&<>\u2028\u2029]/g), sorted: true }),
  instant: (nanoseconds) => upToDigits(nanoseconds, 9, 'Z'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/).replaceAll('%20', '+'),
  listParameters: (walletAddress) => [
    ['first', '10'],
    ['wallet-address', walletAddress],
  ],
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    ['User-Agent', 'Go-http-client/1.1'],
    close,
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
    ...line('Authorization', authorization),
    ...line('Content-Digest', content?.digest),
    ...line('Content-Type', content && 'application/json'),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
    ['Accept-Encoding', 'gzip'],
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}
