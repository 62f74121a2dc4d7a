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

/** Newtonsoft.Json and `HttpClient`. A `POST` without content has a type with a charset. */
export const dotnet: Dialect = {
  ...common,
  name: '.NET',
  json: jsonWriter({
    text: escaping(/[\u0085\u2028\u2029]/g),
    number: (value) => String(value).replace('e', 'E'),
  }),
  instant: (nanoseconds) => upToDigits(nanoseconds, 7, '+00:00'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/),
  readAt: (url) => `${url}/`,
  lines: ({ method, url, authorization, content, signature }) => [
    ['Host', url.host],
    close,
    ['Accept', 'application/json'],
    ...line('Authorization', authorization),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
    ...(content === undefined && method !== 'POST'
      ? []
      : line('Content-Type', content ? 'application/json' : 'application/json; charset=utf-8')),
    ...line('Content-Digest', content?.digest),
    ...line('Content-Length', content?.length ?? (method === 'POST' ? '0' : undefined)),
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
}
