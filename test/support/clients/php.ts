import {
  close,
  common,
  contentFields,
  covering,
  type Dialect,
  line,
  methodAndTarget,
} from './dialect.js'
import { withDigits } from './instants.js'
import { escaping, jsonWriter } from './json.js'
import { percentEncoded } from './queries.js'

/**
 * `json_encode` with `JSON_UNESCAPED_SLASHES`, `http_build_query` and Guzzle. Every request has `Content-Type` and
 * `Content-Length`, and `Host` has no port. The signature has no colons.
 */
export const php: Dialect = {
  ...common,
  name: 'PHP',
  json: jsonWriter({
    text: escaping(/[^\0-\x7f]/g),
    number: (value) => String(value).replace(/^(\d)e/, '$1.0e'),
  }),
  instant: (nanoseconds) => withDigits(nanoseconds, 3, 'Z'),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.]/).replaceAll('%20', '+'),
  continueAt: (uri) => `${uri}/`,
  lines: ({ url, authorization, content, signature }) => [
    ['User-Agent', 'OP-PHP-SDK-Client'],
    ['Accept', 'application/json'],
    close,
    ['Content-Type', 'application/json'],
    ['Content-Length', content?.length ?? '0'],
    ...line('Authorization', authorization),
    ['Host', url.hostname],
    ...line('Content-Digest', content?.digest),
    ['Signature', signature.value],
    ['Signature-Input', signature.input],
  ],
  covers: covering(methodAndTarget, ['authorization'], contentFields),
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`],
  signatureForm: 'php',
}
